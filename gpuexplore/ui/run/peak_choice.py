"""The choice of what MFU and bandwidth are held against, remembered in the URL, with a table of every answer."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from gpuexplore.analysis.run.evidence import gather
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.measured_ceiling import best_of
from gpuexplore.analysis.utilization.peak_choice import (
    Against,
    Denominator,
    bandwidth_denominators,
    chosen,
    chosen_bandwidth,
    denominators,
    peak_kind,
)
from gpuexplore.analysis.utilization.rates import bytes_per_s, flop_count, flop_per_s, shape_label
from gpuexplore.analysis.utilization.utilization import (
    BANDWIDTH_KINDS,
    PEAK_KINDS,
    bandwidth_share,
    cache_resident_reason,
    compute_share,
)
from gpuexplore.devices.identity import device_key
from gpuexplore.model import Bandwidth, Device, Peak, Result, Run
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import own_bandwidth, own_peaks, store
from gpuexplore.ui.url_widgets import select
from gpuexplore.units import UNKNOWN, format_bytes_per_s, format_flop_per_s, format_percent

NAME = "peak"  # the URL's parameter
WHY = "Source, or why it is unknown"


def choose_against(run: Run) -> Against:
    """Draw the choice, and return what is chosen."""
    usual = usual_against(run)
    evidence = gather(run.results, None, usual)
    if evidence is None:
        return usual
    usual = evidence.against
    return replace(usual, kind=peak_kind(_choose(evidence.fastest, usual)))


def show_every_denominator(run: Run, against: Against) -> None:
    """Show, folded, what each answer of the choice would be for the fastest result."""
    evidence = gather(run.results, None, replace(against, kind=None))
    if evidence is None:
        return
    with st.expander("Every denominator: all that the fastest can be held against", icon=":material/percent:"):
        show_denominators(evidence.fastest, evidence.against)


def _choose(fastest: Result, usual: Against) -> str:
    """Draw the select box: the usual one first, then the known ones, then the unknown ones with a dash."""
    computes = bool(flop_count(fastest.case))
    words, what = (PEAK_KINDS, "MFU") if computes else (BANDWIDTH_KINDS, "Memory rate")
    standard = chosen(fastest, usual) if computes else chosen_bandwidth(fastest, usual)
    texts = {"": f"{words[standard.kind]} (usual)" if standard.peak else f"{UNKNOWN} (usual)"}
    for answer in sorted(_answers(fastest, usual), key=lambda answer: answer.peak is None):
        texts[answer.kind] = f"{words[answer.kind]}{'' if answer.peak else f': {UNKNOWN}'}"
    return select(f"{what} against", NAME, list(texts), shown=lambda one: texts[one])


def _answers(result: Result, against: Against) -> tuple[Denominator[Peak] | Denominator[Bandwidth], ...]:
    return denominators(result, against) if flop_count(result.case) else bandwidth_denominators(result, against)


def usual_against(run: Run) -> Against:
    """Return the visitor's own peaks, where all results are of one device, and what was measured there before."""
    devices = {device_key(device): device for device in _devices(run.results)}
    known = best_of(result for device in devices.values() for result in _earlier(run, device))
    if len(devices) != 1:  # one's own peak of one device must not be used for another
        return Against(known=known)
    (device,) = devices.values()
    return Against(None, own_peaks(device), own_bandwidth(device), known)


def show_denominators(result: Result, against: Against) -> None:
    """Show the tables of everything a result can be held against: its FLOP/s, then its bytes/s."""
    case = result.case
    name = f"{case.implementation} in {case.dtype} at {shape_label(case.shape)}"
    if flop_count(case):
        st.markdown(f"**{name}: {format_flop_per_s(flop_per_s(result))}**")
        rows = [_compute_row(denominator, result) for denominator in denominators(result, against)]
        st.table(rows, hide_index=True, alt=f"MFU of {name} against every kind of peak; a dash is unknown")
    st.markdown(f"**{name}: {format_bytes_per_s(bytes_per_s(result))}**")
    if cached := cache_resident_reason(result):
        st.caption(f"It has no share of the memory bandwidth: {cached}.")
    rows = [
        _memory_row(bandwidth_denominator, result) for bandwidth_denominator in bandwidth_denominators(result, against)
    ]
    st.table(rows, hide_index=True, alt=f"Memory use of {name} against every kind of bandwidth; a dash is unknown")


def _compute_row(one: Denominator[Peak], result: Result) -> dict[str, str]:
    return {
        "Held against": PEAK_KINDS[one.kind].removeprefix("the "),
        "Peak": _unbroken(format_flop_per_s(one.peak.flop_per_s if one.peak else None)),
        "MFU": _unbroken(format_percent(compute_share(result, one.peak))),
        WHY: _why(one, why_above_peak(result, one.peak)),
    }


def _memory_row(one: Denominator[Bandwidth], result: Result) -> dict[str, str]:
    return {
        "Held against": BANDWIDTH_KINDS[one.kind].removeprefix("the "),
        "Bandwidth": _unbroken(format_bytes_per_s(one.peak.bytes_per_s if one.peak else None)),
        "Share": _unbroken(format_percent(bandwidth_share(result, one.peak))),
        WHY: _why(one, why_above_bandwidth(result, one.peak)),
    }


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")  # a narrow column would part a number from its unit


def _why(one: Denominator[Peak] | Denominator[Bandwidth], above: str | None) -> str:
    """Return the source as Markdown that shows what users wrote as it is, after the reason for more than 100 %."""
    source = one.peak.source if one.peak else one.reason or UNKNOWN
    return plain(f"{above} {source}" if above else source)


def _devices(results: Sequence[Result]) -> list[Device]:
    return [result.environment.device for result in results if result.environment]


def _earlier(run: Run, device: Device) -> tuple[Result, ...]:
    """Return what earlier runs measured on a device without measured ceilings; read once for each run on the page."""
    if any(peak.kind == "measured_ceiling" for peak in device.peaks):
        return ()
    key = f"against.{run.id}.{device_key(device)}.{run.active}"
    if key not in st.session_state:
        st.session_state[key] = best_of(result for _, result in store().measured_results(device))
    found: tuple[Result, ...] = st.session_state[key]
    return found
