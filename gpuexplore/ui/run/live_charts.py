"""Charts of a growing run, made as rarely as is honest: building one takes a tenth of a second of a core.

That core may be the one that is being measured. So while a run is active, each redraw makes one chart
anew, the one that is furthest behind, and shows the others as they were; a finished run shows all as new.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import altair as alt
import streamlit as st

from gpuexplore.model import Run


@dataclass(frozen=True, slots=True)
class Drawing:
    """What there is to draw under one name.

    Attributes:
        name: unique on the page.
        build: makes the chart.
        missing: says what the chart leaves out, or None.
        setting: what the chart depends on besides the results.
    """

    name: str
    build: Callable[[], alt.LayerChart]
    missing: Callable[[], str | None]
    setting: Hashable = None


@dataclass(frozen=True, slots=True)
class _Drawn:
    results: int
    setting: Hashable
    spec: dict[str, Any]
    missing: str | None


def refresh(run: Run, drawings: list[Drawing]) -> None:
    """Make the charts that have to be new on this redraw."""
    held = _held(run)
    behind = [drawing for drawing in drawings if not _is_new(held.get(drawing.name), run, drawing)]
    if run.active and behind:
        behind = [min(behind, key=lambda one: held[one.name].results if one.name in held else -1)]
    for one in behind:
        held[one.name] = _Drawn(len(run.results), one.setting, one.build().to_dict(validate=False), one.missing())


def draw(run: Run, drawing: Drawing) -> None:
    """Show a chart as it was last made; nothing while its turn has not come."""
    drawn = _held(run).get(drawing.name)
    if drawn is None:
        return
    st.vega_lite_chart(drawn.spec, key=f"chart.{drawing.name}.{run.id}")
    if drawn.missing:
        st.caption(drawn.missing)


def _held(run: Run) -> dict[str, _Drawn]:
    held: dict[str, _Drawn] = st.session_state.setdefault(f"charts.{run.id}", {})
    return held


def _is_new(drawn: _Drawn | None, run: Run, drawing: Drawing) -> bool:
    return drawn is not None and (drawn.results, drawn.setting) == (len(run.results), drawing.setting)
