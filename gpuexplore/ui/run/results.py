"""Results of a run on a page: sentences, charts, a table of every figure, conditions of the measurement, exports."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore import charts
from gpuexplore.analysis.model import AnalyzedResult, PeakChoice, RunAnalysis, Severity
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.run.summary_rules import phases_sentence
from gpuexplore.analysis.utilization import (
    PEAK_SOURCES,
    bandwidth_utilization,
    known_bandwidths,
    known_peaks,
    mfu,
    shape_label,
    why_above_bandwidth,
    why_above_peak,
)
from gpuexplore.charts.points import EMULATED, lines_of
from gpuexplore.core import (
    UNKNOWN,
    Bandwidth,
    Environment,
    Peak,
    Run,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    in_one_unit,
)
from gpuexplore.hardware import TORCH_KINDS
from gpuexplore.recorded import recording_of_run
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.comparison import RunView, choose_comparison
from gpuexplore.ui.run.live_charts import Drawing, MadeChart, live_charts, offer_pictures, show_made
from gpuexplore.ui.run.table import show_results_table
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.undocumented import delta_path_of, record, send_again
from gpuexplore.ui.url_widgets import segments, select, several

ICONS: Mapping[Severity, str] = MappingProxyType(
    {
        "explains": ":material/lightbulb:",
        "doubt": ":orange[:material/warning:]",
        "wrong": ":red[:material/error:]",
    }
)

WHY = "Source, or why it is unknown"


# Parts of a page that look the same to all visitors: drawn for the first, sent to the others as they were drawn.
#
# Drawing an element takes Streamlit a tenth of a millisecond and a chart one or two; sending what was drawn is ten
# times as cheap. Where a version of Streamlit lacks what this rests on, every visitor's part is drawn.


def _part() -> Callable[[DeltaGenerator, Callable[[], None]], None]:
    """Return what shows a part in a container: as it was drawn, and drawn where it was not yet."""
    lock = Lock()
    drawn: Sequence[Any] | None = None

    def show(container: DeltaGenerator, draw: Callable[[], None]) -> None:
        nonlocal drawn
        with lock:
            if drawn is None:
                with container:
                    drawn = record(draw)
                return
        send_again(drawn)

    return show


PARTS: Shared[Callable[[DeltaGenerator, Callable[[], None]], None]] = Shared(60)


def _draw_once(key: Hashable, draw: Callable[[], None]) -> None:
    """Show in a container what `draw` draws, which is drawn anew only where this container of the page lacks it.

    Later visitors wait; where the first one leaves before it is drawn, the next one draws it.

    Args:
        key: everything that what is drawn depends on.
        draw: draws no widgets, for each visitor has an own state of those.
    """
    container = st.container()
    path = delta_path_of(container)
    if path is None:
        with container:
            draw()
        return
    PARTS.get((key, path), _part)(container, draw)


def _show_conditions(run: Run) -> None:
    """Show the environment of a run, folded away."""
    environment = next((result.environment for result in run.results if result.environment), None)
    if environment is None:
        return
    with st.expander("Conditions and sources", icon=":material/fact_check:"):
        settings = ", ".join(f"`{name}={value}`" for name, value in environment.settings.items())
        facts = [
            *_provenance_facts(run),
            ("Device", f"{environment.device.title} (`{environment.device.id}`)"),
            ("Measured", f"{environment.started_utc.replace('T', ' ').removesuffix('+00:00')} UTC"),
            *([("Threads", str(environment.threads or "unknown"))] if environment.device.kind == "cpu" else []),
            ("Governor", environment.governor or "unknown"),
            ("Libraries", ", ".join(f"{name} {version}" for name, version in environment.libraries.items())),
            ("Variables that change speed", settings or "none set"),
            ("System", f"Python {environment.python}, {environment.platform}"),
            ("gpuexplore", f"{environment.app_version}, commit {environment.commit or 'unknown'}"),
        ]
        left, right = st.columns(2)
        left.markdown("\n".join(f"- **{name}**: {value}" for name, value in facts))
        right.markdown("\n".join(_peak_lines(environment)))


def _provenance_facts(run: Run) -> list[tuple[str, str]]:
    """Return where a recorded run comes from, as names and values; nothing for a run of this server."""
    recording = recording_of_run(run.id)
    if recording is None:
        return []
    provenance = recording.provenance
    when = provenance.recorded_utc.replace("T", " ").removesuffix("+00:00")
    system = f"Python {provenance.python}, {plain(provenance.platform)}"
    return [
        ("Recorded", f"{when} UTC by {plain(provenance.recorded_by)}"),
        ("With", f"{plain(provenance.method)}, commit `{provenance.commit}`, {system}"),
        ("Command", f"`{provenance.command}`"),
        (
            "Devices of the recording",
            "; ".join(
                f"`{device.id}` {plain(device.title)}, driver {device.driver or 'none'}"
                for device in provenance.devices
            ),
        ),
        (
            "Libraries of the recording",
            ", ".join(f"{name} {version}" for name, version in provenance.libraries.items()),
        ),
    ]


def _peak_lines(environment: Environment) -> list[str]:
    device = environment.device
    lines = [
        f"- **{peak.dtype}**, {peak.unit} units: {format_flop_per_s(peak.flop_per_s)}: {peak.source}"
        for peak in device.peaks
    ]
    known = ["**Peaks of the device at that time**", "", *lines] if lines else ["No peak of this device is known."]
    notes = device.notes if device.kind in TORCH_KINDS else ()  # those of others are about the peaks alone
    return [*known, "", *(f"- {plain(note)}" for note in notes)]


def show_results(run: Run) -> None:
    """Show the results a run has so far: the headline, the chart that is chosen, what follows, and every figure."""
    headline = st.container()
    tabs, compared = st.columns([4, 1], vertical_alignment="bottom")
    with compared.popover("Baseline, lines", icon=":material/tune:", width="stretch"):
        drawn = choose_comparison(run)
        hidden = _choose_hidden(drawn)
    if drawn.overlay:
        st.caption(drawn.overlay)
    analysis = drawn.analysis
    headline.markdown(f"#### {analysis.summary.headline}")
    with tabs:
        chart = _chosen_chart(run, drawn, hidden)
    if run.active:
        _draw_once((drawn, chart), lambda: _show_growing(run, drawn, chart))
        return
    _draw_once((drawn, chart), lambda: _show_chart(run, chart))
    if chart:
        with st.popover("Save chart", icon=":material/image:"):
            offer_pictures(chart, run)
    _show_sentences(analysis)
    show_diagnosis(analysis)
    _draw_once((drawn, "table"), lambda: show_results_table(drawn))

    def sources() -> None:
        _show_known_peaks(analysis)
        _show_conditions(run)

    _draw_once((drawn, "sources"), sources)


def _show_sentences(analysis: RunAnalysis) -> None:
    if analysis.summary.details:
        st.markdown("\n".join(f"- {sentence}" for sentence in analysis.summary.details))
    _show_machines(analysis)


def _show_machines(analysis: RunAnalysis) -> None:
    """Say once by how much times vary on each device, the evidence on demand."""
    about = "Intervals and conclusions account for it; only results that are worse than the rest carry a flag"
    for note in analysis.machines:
        with st.expander(note.sentence, icon=":material/info:"):
            st.markdown("\n".join(f"- {detail}." for detail in (*note.details, about)))


def _show_growing(run: Run, drawn: RunView, chart: MadeChart | None) -> None:
    _show_chart(run, chart)
    _show_sentences(drawn.analysis)
    show_diagnosis(drawn.analysis, running=True)
    show_results_table(drawn)
    _show_conditions(run)


def _choose_hidden(drawn: RunView) -> tuple[str, ...]:
    """Draw the choice of what charts leave out, and return it."""
    lines = lines_of(drawn.analysis)
    options = list(dict.fromkeys((*(series for series, _ in lines), *(dtype for _, dtype in lines))))
    if any(lines.values()) and not all(lines.values()):
        options.append(EMULATED)
    if len(lines) < 2 and "hide" not in link.parameters():
        return ()
    return tuple(several("Hide in charts", "hide", options, default=()))


def _chosen_chart(run: Run, drawn: RunView, hidden: tuple[str, ...]) -> MadeChart | None:
    """Draw the choice of a chart, and return the chosen one as it is now; None before anything can be drawn."""
    analysis = drawn.analysis
    if analysis.fastest is None:
        return None
    rate = Drawing("rate", "Rate", charts.throughput, charts.peak_notes, by_peak=True)
    if is_memory_bound(analysis):
        rate = Drawing("bandwidth", "Rate", charts.bandwidth)
    drawings = {
        "time": Drawing("time", "Time", charts.time, charts.time_notes),
        "speedup": Drawing("speedup", "Speedup", charts.speedup, charts.speedup_left_out),
        "share": Drawing("share", "Share of the limit", charts.share, charts.share_left_out),
        "rate": rate,
    }
    if charts.swept_axes(analysis):
        drawings["map"] = Drawing("map", "Map", charts.heat_map, in_panels=False)
    chosen = segments("Chart", "chart", list(drawings), shown=lambda name: drawings[name].title, labelled=False)
    if chosen == "share" and not charts.has_share(analysis):
        st.caption("There is no share of the limit: for every result the peak is unknown, or a cache served the data.")
        return None
    (made,) = live_charts(drawn, hidden).refresh(run, drawn, [drawings[chosen]])
    return made


def _show_chart(run: Run, chart: MadeChart | None) -> None:
    if chart:
        show_made(chart, run)


# A table of everything that the fastest result of a run can be compared with.


def _show_known_peaks(analysis: RunAnalysis) -> None:
    """Show, folded, the fastest result relative to every known peak."""
    if analysis.fastest is None or not analysis.fastest.byte_count:  # nothing is known of what it does
        return
    with st.expander("MFU against every known peak", icon=":material/percent:"):
        name = f"{analysis.fastest.label} at {shape_label(analysis.fastest.case.shape)}"
        if analysis.fastest.flop_count:
            st.markdown(f"**{name}: {format_flop_per_s(analysis.fastest.flop_per_s)}**")
            rows = _in_one_unit(
                [
                    {
                        "Relative to": PEAK_SOURCES[choice.kind].label,
                        "Peak": format_flop_per_s(choice.peak.flop_per_s if choice.peak else None),
                        "MFU": format_percent(mfu(analysis.fastest.result, choice.peak)),
                        WHY: _why(choice, why_above_peak(analysis.fastest.result, choice.peak)),
                    }
                    for choice in known_peaks(analysis.fastest.result, analysis.context)
                ]
            )
            st.table(rows, hide_index=True, alt=f"MFU of {name} relative to every kind of peak; a dash is unknown")
        st.markdown(f"**{name}: {format_bytes_per_s(analysis.fastest.bytes_per_s)}**")
        if analysis.fastest.cache_resident_reason:
            st.caption(f"It has no share of the memory bandwidth: {analysis.fastest.cache_resident_reason}.")
        rows = _in_one_unit(
            [
                {
                    "Relative to": PEAK_SOURCES[choice.kind].bandwidth_label,
                    "Bandwidth": format_bytes_per_s(choice.peak.bytes_per_s if choice.peak else None),
                    "Share": format_percent(bandwidth_utilization(analysis.fastest.result, choice.peak)),
                    WHY: _why(choice, why_above_bandwidth(analysis.fastest.result, choice.peak)),
                }
                for choice in known_bandwidths(analysis.fastest.result, analysis.context)
            ]
        )
        st.table(
            rows, hide_index=True, alt=f"Memory use of {name} relative to every kind of bandwidth; a dash is unknown"
        )


def _in_one_unit(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return rows whose columns have one unit each, and whose figures do not break."""
    return [
        {
            name: cell if name in ("Relative to", WHY) else cell.replace(" ", "\N{NO-BREAK SPACE}")
            for name, cell in zip(rows[0], row, strict=True)
        }
        for row in in_one_unit([tuple(row.values()) for row in rows])
    ]


def _why(choice: PeakChoice[Peak] | PeakChoice[Bandwidth], above: str | None) -> str:
    """Return the source as Markdown that shows what users wrote as it is, after the reason for more than 100 %."""
    source = choice.peak.source if choice.peak else choice.reason or UNKNOWN
    return plain(f"{above} {source}" if above else source)


# Why a result is as it is, on a page: sentences by how grave they are, each with the figures it rests on.


def show_diagnosis(analysis: RunAnalysis, *, running: bool = False) -> None:
    """Show what explains one of the results: the chosen one; while `running` the fastest so far."""
    first = analysis.headline_result
    if first is None:
        return
    st.markdown("**What limits this result**")
    if running:
        st.caption(f"{_label(first)}, the fastest so far")
    chosen = first
    if not running:
        by_label = {_label(analyzed): analyzed for analyzed in (first, *analysis.results)}
        chosen = by_label[select("Result", "explain", list(by_label))]  # the first one is the default
    if phases := phases_sentence(chosen):
        st.markdown(f":material/timeline: {plain(phases)}")
    for diagnosis in chosen.diagnoses:
        with st.container(gap=None):
            st.markdown(f"{ICONS[diagnosis.severity]} {plain(diagnosis.sentence)}")
            st.caption(plain(diagnosis.evidence))
    if not chosen.diagnoses:
        st.caption("Nothing notable: no known peak limits it, and it has no flags.")


def _label(analyzed: AnalyzedResult) -> str:
    status = analyzed.result.status.value.replace("_", " ")
    return f"{shape_label(analyzed.case.shape)}, {analyzed.label}{'' if analyzed.measurement else f' ({status})'}"
