"""Presentation of a run: a title, a chart a slide, an address; arrow keys step, and each step has a link."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import streamlit as st

from gpuexplore import charts
from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.charts import Lines, has_share, panels, shown_lines
from gpuexplore.core import InvalidInput, Run, read_whole
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run_head import facts_of, title_of
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_spec, spec_of
from gpuexplore.ui.shared.qr import qr_code
from gpuexplore.ui.url_widgets import show_problem

ChartName = Literal["time", "speedup", "share", "rate"]
STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding: 2.5vh 3vw 0; max-width: none; }
[data-testid="stMarkdownContainer"] p, [data-testid="stMarkdownContainer"] li { font-size: 3.4vh; line-height: 1.5; }
[data-testid="stColumn"] [data-testid="stMarkdownContainer"] li { margin-bottom: 2vh; }
[data-testid="stBaseButton-secondary"] [data-testid="stMarkdownContainer"] p { font-size: 2.4vh; }
[data-testid="stMarkdownContainer"] strong { font-size: 4.6vh; line-height: 1.3; }
[data-testid="stHeading"] h1 { font-size: 5.6vh; padding: 0.5vh 0; }
[data-testid="stElementContainer"]:has([data-testid="stVegaLiteChart"]) { height: 86vh; }
:is([data-testid="stFullScreenFrame"], [data-testid="stFullScreenFrame"] > div) { height: 100%; }
[data-testid="stHeader"] { background: none; pointer-events: none; }
[data-testid="stToolbarActions"], [data-testid="stAppDeployButton"], [data-testid="stMainMenu"] { display: none; }
</style>"""
ANALYSES: Shared[RunAnalysis] = Shared(50)


@dataclass(frozen=True, slots=True)
class _Step:
    """State of the screen.

    Attributes:
        chart: which one; None for the title.
        panel: the dtype that it shows; None for all.
        lines: those that it shows.
    """

    chart: ChartName | None = None
    panel: str | None = None
    lines: Lines = frozenset()


def _steps_of(analysis: RunAnalysis) -> Sequence[_Step]:
    """Return the steps of a run, one for each thing that it shows; without a measurement only the title.

    Times are shown in each dtype, and the rest in that of the fastest result.
    """
    found = [_Step()]
    if analysis.fastest is None:
        return found
    best = analysis.fastest.case.dtype
    for chart in ("time", "speedup", "share", "rate"):
        if chart != "share" or has_share(analysis):
            by_peak = chart == "rate" and not is_memory_bound(analysis)
            drawn_in = panels(analysis, by_peak=by_peak)
            shown = {panel: lines or shown_lines(analysis, ()) for panel, lines in drawn_in.items()}
            kept = [panel for panel in shown if chart == "time" or panel in (best, None)]
            found += [_Step(chart, panel, shown[panel]) for panel in kept]
    return found


def is_presented() -> bool:
    """Return whether the link asks for a presentation of a run, or for the wall of a room."""
    presented = {"present": "run", "wall": "room"}.get(st.query_params.get("view", ""))
    return presented is not None and presented in st.query_params


def show_presentation(run: Run) -> None:
    """Show the step of a run that the URL names, with ways to the next one and the one before."""
    st.html(STYLE)
    st.set_page_config(page_title=f"{title_of(run)} · gpuexplore")
    key = (run.id, run.title, run.progress.done, run.progress.provisional)
    analysis = ANALYSES.get(key, lambda: analyze(run.results, running=run.active))
    steps = _steps_of(analysis)
    at = _step_of_link(len(steps))
    step = steps[at - 1]
    with st.container(horizontal=True, vertical_alignment="center"):
        heading = plain(title_of(run))
        if step.chart:
            titles = {"time": "Time per call", "speedup": "Speedup", "share": "Share of the limit", "rate": "Rate"}
            heading = ", ".join(filter(None, (titles[step.chart], step.panel)))
        st.title(heading, anchor=False, width="stretch")
        _show_navigation(at, len(steps), run)
    if step.chart is None:
        words, code = st.columns([3, 1], gap="large")
        with words:
            st.markdown(" · ".join(facts_of(run)))
            st.markdown(f"**{analysis.summary.headline}**")
            st.markdown("\n".join(f"- {sentence}" for sentence in analysis.summary.details[:3]))
        code.image(qr_code(link.address({"run": run.id})), width="stretch", caption="The run, on your own screen")
        return
    build = _build(step.chart, analysis)
    spec = spec_of(lambda: build(analysis, step.lines))
    show_spec(
        for_the_back_row(spec), key=f"present.{run.id}.{step.chart}.{step.panel}.{len(step.lines)}", height="stretch"
    )


def _step_of_link(count: int) -> int:
    """Return the number of the step that the URL names, from 1; the last for older links, whose lines had each one."""
    given = st.query_params.get("slide", "1")
    number = read_whole(given)
    if number is None or number < 1:
        show_problem(InvalidInput.of("slide", given, f"whole numbers from 1 to {count}"))
        return 1
    return min(number, count)


def _build(chart: ChartName, analysis: RunAnalysis) -> Callable[[RunAnalysis, Lines | None], alt.LayerChart]:
    if chart == "rate":
        return charts.bandwidth if is_memory_bound(analysis) else charts.throughput
    return {"time": charts.time, "speedup": charts.speedup, "share": charts.share}[chart]


def for_the_back_row(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart whose type, lines and points can be seen from the back row."""
    found = deepcopy({name: value for name, value in spec.items() if name != "height"})
    for layer in found.get("layer", ()):
        mark = layer.get("mark", {})
        if mark.get("type") == "text":
            mark |= {"fontSize": _scaled(22), "fontWeight": 600}
            mark |= {name: _scaled(2 * mark[name]) for name in ("dx", "dy") if mark.get(name)}
        if mark.get("type") == "line":
            mark["strokeWidth"] = _scaled(4)
        if mark.get("type") == "point":
            mark["size"] = _scaled(max(220, mark.get("size", 0)))
        for channel in layer.get("encoding", {}).values():
            _enlarge(channel)
    return found


def _scaled(pixels: float) -> dict[str, str]:
    """Return a length, given for a screen that is 900 pixels high, on any screen."""
    return {"expr": f"{pixels} * windowSize()[1] / 900"}


def _enlarge(channel: Any) -> None:
    """Enlarge the axis and the legend of a channel, and the margin for names of lines at its end."""
    if not isinstance(channel, dict):
        return
    if isinstance(axis := channel.get("axis"), dict):
        axis |= {"labelFontSize": _scaled(22), "titleFontSize": _scaled(24), "labelLimit": 700, "labelOverlap": True}
    if isinstance(legend := channel.get("legend"), dict):
        legend |= {"labelFontSize": _scaled(22), "symbolSize": _scaled(260), "labelLimit": 1000}
    for holder, name in ((channel.get("scale") or {}, "rangeMax"), (channel, "value")):
        end = holder.get(name)
        if isinstance(end, dict) and str(end.get("expr")).startswith("width - "):
            margin = int(str(end["expr"]).rpartition(" ")[2])
            holder[name] = {"expr": f"width - {_scaled(2 * margin)['expr']}"}


def _show_navigation(at: int, count: int, run: Run) -> None:
    is_last = at == count
    st.button("Back", icon=":material/arrow_back:", shortcut="Left", disabled=at == 1, on_click=_go, args=(at - 1,))
    st.markdown(f"{at} of {count}", width="content")
    st.button("Next", icon=":material/arrow_forward:", shortcut="Right", disabled=is_last, on_click=_go, args=(at + 1,))
    st.button("End", icon=":material/close:", shortcut="Escape", on_click=_end, key=f"present.end.{run.id}")


def _go(number: int) -> None:
    link.write("slide", str(number) if number > 1 else None)


def _end() -> None:
    link.write("view", None)
    link.write("slide", None)
