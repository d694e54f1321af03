"""Charts of a growing run, made as rarely as is honest: building one takes a tenth of a second of a core.

That core may be the one that is being measured. So while a run is active, one chart is made anew each second, for all
visitors: the one that was made longest ago; the others are shown as they were. A chart that was not chosen before is
made at once; so are all that lack points, as soon as the first pass is complete. A finished run shows all as new.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

import altair as alt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.charts.exports import Exported
from gpuexplore.charts.exports.picture import PictureType, columns_of, pictures, specification
from gpuexplore.charts.points import Lines, panels
from gpuexplore.core.model import Run
from gpuexplore.ui.run.comparison import RunView
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import Spec, show_spec, spec_of

REFRESH_S = 0.9  # less than a tick, so that one visitor's every tick brings a chart


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart of a run.

    Attributes:
        name: unique on the page.
        title: what the choice of charts calls it.
        build: makes the chart, of some lines or all.
        left_out: says what the chart leaves out, or None.
        in_panels: whether many lines are drawn in a panel for each dtype.
        by_peak: whether dtypes with peaks of their own are.
    """

    name: str
    title: str
    build: Callable[[RunAnalysis, Lines | None], alt.LayerChart]
    left_out: Callable[[RunAnalysis], str | None] = lambda _: None
    in_panels: bool = True
    by_peak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MadeChart:
    """A chart as it was last made; another one each time. Its `specs` are those of its `panels`, by dtype or None."""

    drawing: Drawing
    drawn: RunView
    specs: Mapping[str | None, Spec]
    panels: Mapping[str | None, Lines | None]
    left_out: str | None
    made_s: float


class _LiveCharts:
    """The charts of one run by one choice; safe to ask from several threads."""

    def __init__(self, hidden: tuple[str, ...]) -> None:
        self._hidden = hidden
        self._lock = Lock()
        self._made: dict[str, MadeChart] = {}
        self._refreshed_s = float("-inf")

    def refresh(self, run: Run, drawn: RunView, drawings: Sequence[Drawing]) -> list[MadeChart | None]:
        """Make the charts that are due on this redraw, and return all, None for one that was not made yet.

        Visitors who come while they are made see the previous ones.
        """
        if self._lock.acquire(blocking=not run.active):
            try:
                for drawing in self._due(run, drawn, drawings):
                    drawn_in = panels(drawn.analysis, self._hidden, apart=drawing.in_panels, by_peak=drawing.by_peak)
                    specs = {
                        panel: spec_of(partial(drawing.build, drawn.analysis, lines))
                        for panel, lines in drawn_in.items()
                    }
                    self._refreshed_s = time.monotonic()
                    left_out = drawing.left_out(drawn.analysis)
                    self._made[drawing.name] = MadeChart(drawing, drawn, specs, drawn_in, left_out, self._refreshed_s)
            finally:
                self._lock.release()
        return [self._made.get(drawing.name) for drawing in drawings]

    def _due(self, run: Run, drawn: RunView, drawings: Sequence[Drawing]) -> list[Drawing]:
        never = [drawing for drawing in drawings if drawing.name not in self._made]
        made = [self._made[drawing.name] for drawing in drawings if drawing.name in self._made]
        behind = [chart for chart in made if chart.drawn is not drawn]
        if not run.active:
            return [*never, *(chart.drawing for chart in behind)]
        if never or not behind:
            return never
        count = len(drawn.analysis.results)
        lacking = [chart.drawing for chart in behind if len(chart.drawn.analysis.results) < count]
        if lacking and run.progress.measured == run.progress.total:
            return lacking
        is_due = time.monotonic() >= self._refreshed_s + REFRESH_S
        return [min(behind, key=lambda chart: chart.made_s).drawing] if is_due else []


def show_made(chart: MadeChart, run: Run) -> None:
    """Show a chart and what it leaves out."""
    key = f"chart.{chart.drawing.name}.{run.id}"
    if len(chart.specs) > 1:
        row: list[DeltaGenerator] = []
        for panel, spec in chart.specs.items():
            row = row or list(st.columns(columns_of(len(chart.specs)), gap="small"))
            with row.pop(0):
                st.markdown(f"**{panel}**")
                show_spec(spec, key=f"{key}.{panel}")
    else:
        show_spec(*chart.specs.values(), key=key)
    if chart.left_out:
        st.caption(chart.left_out)


def offer_pictures(chart: MadeChart, run: Run) -> None:
    """Draw buttons that save a chart as SVG and PNG, with title, device, date and run id inside."""
    exported = Exported(run.experiment, chart.drawn.analysis, run)
    types: Mapping[PictureType, str] = {"svg": "image/svg+xml", "png": "image/png"}
    for kind, mime in types.items():
        st.download_button(
            kind.upper(),
            partial(_picture, chart, exported, kind),
            file_name=f"gpuexplore-{run.id}-{chart.drawing.name}.{kind}",
            mime=mime,
            icon=":material/image:",
            on_click="ignore",
            key=f"picture.{kind}.{run.id}",
        )


def _picture(chart: MadeChart, exported: Exported, kind: PictureType) -> bytes:
    made = {panel: chart.drawing.build(chart.drawn.analysis, lines) for panel, lines in chart.panels.items()}
    title = f"{exported.title}: {chart.drawing.title.lower()}"
    (picture,) = pictures([specification(made, title, exported.facts)], kind)
    return picture


LIVE: Shared[_LiveCharts] = Shared(60)


def live_charts(drawn: RunView, hidden: tuple[str, ...]) -> _LiveCharts:
    """Return the charts of a run without what is `hidden`, one set for all who look at it by the same choice."""
    return LIVE.get((drawn.choice, hidden), lambda: _LiveCharts(hidden))
