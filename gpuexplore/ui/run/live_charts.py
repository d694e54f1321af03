"""Charts of a growing run, made as rarely as is honest: building one takes a tenth of a second of a core.

That core may be the one that is being measured. So while a run is active, each redraw makes one chart
anew, the one that is furthest behind, and shows the others as they were; a finished run shows all as new.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import streamlit as st

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.model import Run


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart of a run.

    Attributes:
        name: unique on the page.
        title: its heading.
        build: makes the chart.
        left_out: says what the chart leaves out, or None.
    """

    name: str
    title: str
    build: Callable[[RunAnalysis], alt.LayerChart]
    left_out: Callable[[RunAnalysis], str | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A chart as it was last made, from an analysis with so many results."""

    analysis: RunAnalysis
    spec: dict[str, Any]
    left_out: str | None


def refresh(run: Run, analysis: RunAnalysis, drawings: Sequence[Drawing]) -> None:
    """Make the charts that have to be new on this redraw."""
    held = _held(run)
    behind = [drawing for drawing in drawings if not _is_new(held.get(drawing.name), analysis)]
    if run.active and behind:
        behind = [min(behind, key=lambda drawing: _results(held.get(drawing.name)))]
    for drawing in behind:
        spec = drawing.build(analysis).to_dict(validate=False)
        held[drawing.name] = _Drawn(analysis, spec, drawing.left_out(analysis))


def draw(run: Run, drawing: Drawing) -> None:
    """Show a chart with its heading as it was last made; nothing while its turn has not come."""
    drawn = _held(run).get(drawing.name)
    if drawn is None:
        return
    st.markdown(f"**{drawing.title}**")
    st.vega_lite_chart(drawn.spec, key=f"chart.{drawing.name}.{run.id}")
    if drawn.left_out:
        st.caption(drawn.left_out)


def _held(run: Run) -> dict[str, _Drawn]:
    held: dict[str, _Drawn] = st.session_state.setdefault(f"charts.{run.id}", {})
    return held


def _is_new(drawn: _Drawn | None, analysis: RunAnalysis) -> bool:
    return drawn is not None and drawn.analysis is analysis


def _results(drawn: _Drawn | None) -> int:
    return len(drawn.analysis.results) if drawn else -1
