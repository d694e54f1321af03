"""Charts of a growing run, made as rarely as is honest: building one takes a tenth of a second of a core.

That core may be the one that is being measured. So while a run is active, one chart is made anew each second, for all
who watch: the one that was made longest ago; the others are shown as they were. Once the first pass met every case, all
charts are made that lack points: the whole run is seen then. A finished run shows all as new.
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


@dataclass(frozen=True, slots=True, eq=False)
class MadeChart:
    """A chart as it was last made; another one each time."""

    drawing: Drawing
    drawn: Drawn
    spec: Spec
    left_out: str | None
    made_s: float


class LiveCharts:
    """The charts of one run by one choice; safe to ask from several threads."""

    def __init__(self) -> None:
        self._lock, self._made, self._refreshed_s = Lock(), dict[str, MadeChart](), float("-inf")

    def refresh(self, run: Run, drawn: Drawn, drawings: Sequence[Drawing]) -> list[MadeChart | None]:
        """Make the charts that have to be new on this redraw, and return all, None for one whose turn has not come.

        Whoever comes while they are made shows them as they were.
        """
        if self._lock.acquire(blocking=not run.active):
            try:
                for drawing in self._due(run, drawn, drawings):
                    spec = spec_of(partial(drawing.build, drawn.analysis))
                    self._refreshed_s = time.monotonic()
                    left_out = drawing.left_out(drawn.analysis)
                    self._made[drawing.name] = MadeChart(drawing, drawn, spec, left_out, self._refreshed_s)
            finally:
                self._lock.release()
        return [self._made.get(drawing.name) for drawing in drawings]

    def _due(self, run: Run, drawn: Drawn, drawings: Sequence[Drawing]) -> list[Drawing]:
        behind = [drawing for drawing in drawings if self._is_behind(drawing, drawn)]
        if not (run.active and behind):
            return behind
        if run.progress.measured == run.progress.total and (
            gaps := [each for each in behind if self._lacks(each, drawn)]
        ):
            return gaps
        is_due = time.monotonic() >= self._refreshed_s + REFRESH_S
        return [min(behind, key=self._made_s)] if is_due else []

    def _is_behind(self, drawing: Drawing, drawn: Drawn) -> bool:
        made = self._made.get(drawing.name)
        return made is None or made.drawn is not drawn

    def _lacks(self, drawing: Drawing, drawn: Drawn) -> bool:
        """Return whether a chart lacks points that it could show."""
        made = self._made.get(drawing.name)
        return made is None or len(made.drawn.analysis.results) < len(drawn.analysis.results)

    def _made_s(self, drawing: Drawing) -> float:
        made = self._made.get(drawing.name)
        return made.made_s if made else float("-inf")


def show_made(chart: MadeChart, run: Run) -> None:
    """Show a chart with its heading and what it leaves out."""
    st.markdown(f"**{chart.drawing.title}**")
    show_spec(chart.spec, key=f"chart.{chart.drawing.name}.{run.id}")
    if chart.left_out:
        st.caption(chart.left_out)


LIVE: Shared[LiveCharts] = Shared(60)


def live_charts(drawn: Drawn) -> LiveCharts:
    """Return the charts of a run, one set for all who look at it by the same choice."""
    return LIVE.get(drawn.choice, LiveCharts)
