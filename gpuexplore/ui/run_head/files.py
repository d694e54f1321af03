"""A run as files, and as the command or the lines of Python that repeat it."""

from collections.abc import Callable

import streamlit as st

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.charts.exports import EXPORTS, Exported, export
from gpuexplore.model import Run
from gpuexplore.request import as_command, as_python, from_experiment
from gpuexplore.ui.run.comparison import as_linked


def offer_files(run: Run) -> None:
    """Draw a button for each type of file, and the command and the lines of Python that repeat the run."""
    analyze = as_linked(run)
    with st.container(horizontal=True):
        for suffix, kind in EXPORTS.items():
            st.download_button(
                kind.label,
                _content(run, suffix, analyze),
                file_name=f"gpuexplore-{run.experiment.operation}-{run.id}{suffix}",
                mime=kind.mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"export{suffix}.{run.id}",
            )
    request = from_experiment(run.experiment)
    st.caption("The same again, in a shell or in Python:")
    st.code(as_command(request), language="bash", wrap_lines=True)
    st.code(as_python(request), language="python", wrap_lines=True)


def _content(run: Run, suffix: str, analyze: Callable[[], RunAnalysis]) -> Callable[[], bytes]:
    """Return a function that makes the file only when it is asked for."""
    return lambda: export(suffix, Exported(run.experiment, analyze(), run))
