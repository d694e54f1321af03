"""Files of other machines, dropped onto the page Runs."""

import streamlit as st

from gpuexplore.errors import GpuExploreError
from gpuexplore.jobs.run_sources import import_runs
from gpuexplore.recorded.files import GZIPPED, SUFFIXES
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import show_problem

KEY = "runs.import"
TAKEN = "runs.imported"  # the session's key of the files that were taken, by Streamlit's id
HELP = (
    "What Export wrote as JSON, recordings, and JSON of pyperf, pytest-benchmark and nvbench. They are shown as "
    "imported, and count for no device of this server."
)


def offer_import() -> None:
    """Draw a field for files, keep the runs in those that are new, and name what is refused."""
    with st.expander("Import runs of other machines", icon=":material/upload_file:"):
        files = st.file_uploader(
            "Files",
            type=[suffix.removeprefix(".") for suffix in (*SUFFIXES, GZIPPED)],
            accept_multiple_files=True,
            key=KEY,
            help=HELP,
        )
        taken: dict[str, str] = st.session_state.setdefault(TAKEN, {})
        for file in files:
            if file.file_id not in taken:
                taken[file.file_id] = _take(file.name, file.getvalue())
            if taken[file.file_id]:
                st.success(taken[file.file_id], icon=":material/check:")


def _take(name: str, content: bytes) -> str:
    """Keep the runs of a file; return what was kept in words, empty where the file was refused."""
    try:
        check(Right.KEEP)
        with st.spinner(f"Reading {plain(name)} …"):
            runs = import_runs(store(), name, content, owner())
    except GpuExploreError as error:
        show_problem(error)
        return ""
    return f"Imported: {', '.join(plain(run.title) for run in runs)}"
