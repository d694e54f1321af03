"""Charts of a growing run, made as rarely as is honest: building one takes a tenth of a second of a core.

That core may be the one that is being measured. So while a run is active, one chart is made anew each second, for all
who watch: the one that is furthest behind; the others are shown as they were. A finished run shows all as new.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

import altair as alt
import streamlit as st

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.model import Run
from gpuexplore.ui.run.comparison import Drawn
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import Spec, show_spec, spec_of

REFRESH_S = 0.9  # less than a tick, so that one visitor's every tick brings a chart


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
class _Made:
    """A chart as it was last made, from so many results."""

    drawn: Drawn
    spec: Spec
    left_out: str | None


class LiveCharts:
    """The charts of one run by one choice; safe to ask from several threads."""

    def __init__(self) -> None:
        self._lock, self._made, self._refreshed_s = Lock(), dict[str, _Made](), float("-inf")

    def refresh(self, run: Run, drawn: Drawn, drawings: Sequence[Drawing]) -> None:
        """Make the charts that have to be new on this redraw; whoever comes meanwhile shows them as they were."""
        if not self._lock.acquire(blocking=not run.active):
            return
        try:
            for drawing in self._due(run, drawn, drawings):
                spec = spec_of(partial(drawing.build, drawn.analysis))
                self._made[drawing.name] = _Made(drawn, spec, drawing.left_out(drawn.analysis))
                self._refreshed_s = time.monotonic()
        finally:
            self._lock.release()

    def draw(self, run: Run, drawing: Drawing) -> None:
        """Show a chart with its heading as it was last made; nothing while its turn has not come."""
        made = self._made.get(drawing.name)
        if made is None:
            return
        st.markdown(f"**{drawing.title}**")
        show_spec(made.spec, key=f"chart.{drawing.name}.{run.id}")
        if made.left_out:
            st.caption(made.left_out)

    def _due(self, run: Run, drawn: Drawn, drawings: Sequence[Drawing]) -> list[Drawing]:
        behind = [drawing for drawing in drawings if self._is_behind(drawing, drawn)]
        if not (run.active and behind):
            return behind
        is_due = time.monotonic() >= self._refreshed_s + REFRESH_S
        return [min(behind, key=self._results)] if is_due else []

    def _is_behind(self, drawing: Drawing, drawn: Drawn) -> bool:
        made = self._made.get(drawing.name)
        return made is None or made.drawn is not drawn

    def _results(self, drawing: Drawing) -> int:
        made = self._made.get(drawing.name)
        return len(made.drawn.analysis.results) if made else -1


LIVE: Shared[LiveCharts] = Shared(60)


def live_charts(drawn: Drawn) -> LiveCharts:
    """Return the charts of a run, one set for all who look at it by the same choice."""
    return LIVE.get(drawn.choice, LiveCharts)
