"""Results of a run on a page: sentences, charts, a table of every figure, conditions of the measurement, exports."""

import streamlit as st

from gpuexplore import charts
from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.run_summary import is_memory_bound
from gpuexplore.charts.panels import EMULATED, lines_of
from gpuexplore.charts.share import has_share, share_left_out
from gpuexplore.charts.speedup import speedup_left_out
from gpuexplore.devices import TORCH_KINDS
from gpuexplore.model import Environment, Run
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.comparison import Drawn, choose_comparison
from gpuexplore.ui.run.diagnosis import show_diagnosis
from gpuexplore.ui.run.known_peaks import show_known_peaks
from gpuexplore.ui.run.live_charts import Drawing, MadeChart, live_charts, offer_pictures, show_made
from gpuexplore.ui.run.recorded import provenance_facts
from gpuexplore.ui.run.table import show_results_table
from gpuexplore.ui.shared.replay import draw_once
from gpuexplore.ui.url_widgets import segments, several
from gpuexplore.units import format_flop_per_s

TIME = Drawing("time", "Time", charts.time, charts.time_notes)
SPEEDUP = Drawing("speedup", "Speedup", charts.speedup, speedup_left_out)
SHARE = Drawing("share", "Share of the limit", charts.share, share_left_out)
MACHINE_MEANS = "Intervals and conclusions allow for it; a flag stands on a result where it is worse than in the rest"
MAP = Drawing("map", "Map", charts.heat_map, in_panels=False)
NO_SHARE = "There is no share of the limit: the peak is unknown for every result, or a cache served it."
COMPUTE_RATE = Drawing("rate", "Rate", charts.throughput)
MEMORY_RATE = Drawing("bandwidth", "Rate", charts.bandwidth)


def _show_conditions(run: Run) -> None:
    """Show the environment of a run, folded away."""
    environment = next((result.environment for result in run.results if result.environment), None)
    if environment is None:
        return
    with st.expander("Conditions and sources", icon=":material/fact_check:"):
        facts = [*provenance_facts(run), *_facts(environment)]
        left, right = st.columns(2)
        left.markdown("\n".join(f"- **{name}**: {value}" for name, value in facts))
        right.markdown("\n".join(_peak_lines(environment)))


def _facts(environment: Environment) -> list[tuple[str, str]]:
    settings = ", ".join(f"`{name}={value}`" for name, value in environment.settings.items())
    return [
        ("Device", f"{environment.device.title} (`{environment.device.id}`)"),
        ("Measured", f"{environment.started_utc.replace('T', ' ').removesuffix('+00:00')} UTC"),
        *([("Threads", str(environment.threads or "unknown"))] if environment.device.kind == "cpu" else []),
        ("Governor", environment.governor or "unknown"),
        ("Libraries", ", ".join(f"{name} {version}" for name, version in environment.libraries.items())),
        ("Variables that change speed", settings or "none set"),
        ("System", f"Python {environment.python}, {environment.platform}"),
        ("gpuexplore", f"{environment.app_version}, commit {environment.commit or 'unknown'}"),
    ]


def _peak_lines(environment: Environment) -> list[str]:
    device = environment.device
    lines = [
        f"- **{peak.dtype}**, {peak.unit} units: {format_flop_per_s(peak.flop_per_s)}: {peak.source}"
        for peak in device.peaks
    ]
    known = (
        ["**The peaks of the device, as they were then**", "", *lines]
        if lines
        else ["No peak of this device is known."]
    )
    notes = device.notes if device.kind in TORCH_KINDS else ()  # of others they tell of the peaks alone
    return [*known, "", *(f"- {plain(note)}" for note in notes)]


def show_results(run: Run) -> None:
    """Show the results a run has so far: the headline, the chart that is chosen, what follows, and every figure."""
    headline = st.container()
    tabs, compared = st.columns([4, 1], vertical_alignment="bottom")
    with compared.popover("Baseline, lines", icon=":material/tune:", width="stretch"):
        drawn = choose_comparison(run)
        hidden = _choose_hidden(drawn)
    if drawn.beside:
        st.caption(drawn.beside)
    analysis = drawn.analysis
    headline.markdown(f"#### {analysis.summary.headline}")
    with tabs:
        chart = _chosen_chart(run, drawn, hidden)
    if run.active:
        draw_once((drawn, chart), lambda: _show_growing(run, drawn, chart))
        return
    draw_once((drawn, chart), lambda: _show_chart(run, chart))
    if chart:
        with st.popover("Save chart", icon=":material/image:"):
            offer_pictures(chart, run)
    _show_sentences(analysis)
    show_diagnosis(analysis)
    draw_once((drawn, "table"), lambda: show_results_table(drawn))
    draw_once((drawn, "sources"), lambda: _show_sources(run, analysis))


def _show_sentences(analysis: RunAnalysis) -> None:
    if analysis.summary.details:
        st.markdown("\n".join(f"- {sentence}" for sentence in analysis.summary.details))
    show_machines(analysis)


def show_machines(analysis: RunAnalysis) -> None:
    """Say once by how much times vary on each device, the evidence on demand."""
    for note in analysis.machines:
        with st.expander(note.sentence, icon=":material/info:"):
            st.markdown("\n".join(f"- {detail}." for detail in (*note.details, MACHINE_MEANS)))


def _show_growing(run: Run, drawn: Drawn, chart: MadeChart | None) -> None:
    _show_chart(run, chart)
    _show_sentences(drawn.analysis)
    show_diagnosis(drawn.analysis, running=True)
    show_results_table(drawn)
    _show_conditions(run)


def _show_sources(run: Run, analysis: RunAnalysis) -> None:
    show_known_peaks(analysis)
    _show_conditions(run)


def _choose_hidden(drawn: Drawn) -> tuple[str, ...]:
    """Draw the choice of what charts leave out, and return it."""
    lines = lines_of(drawn.analysis)
    series, dtypes = dict.fromkeys(name for name, _ in lines), dict.fromkeys(dtype for _, dtype in lines)
    options = [*series, *dtypes, *([EMULATED] if any(lines.values()) and not all(lines.values()) else [])]
    if len(lines) < 2 and "hide" not in link.parameters():
        return ()
    return tuple(several("Hide in charts", "hide", options, default=()))


def _chosen_chart(run: Run, drawn: Drawn, hidden: tuple[str, ...]) -> MadeChart | None:
    """Draw the choice of a chart, and return the chosen one as it is now; None before anything can be drawn."""
    analysis = drawn.analysis
    if analysis.fastest is None:
        return None
    by_memory = is_memory_bound(analysis)
    drawings = {"time": TIME, "speedup": SPEEDUP, "share": SHARE, "rate": MEMORY_RATE if by_memory else COMPUTE_RATE}
    if charts.swept_axes(analysis):
        drawings["map"] = MAP
    chosen = segments("Chart", "chart", list(drawings), shown=lambda name: drawings[name].title, labelled=False)
    if chosen == "share" and not has_share(analysis):
        st.caption(NO_SHARE)
        return None
    (made,) = live_charts(drawn, hidden).refresh(run, drawn, [drawings[chosen]])
    return made


def _show_chart(run: Run, chart: MadeChart | None) -> None:
    if chart:
        show_made(chart, run)
