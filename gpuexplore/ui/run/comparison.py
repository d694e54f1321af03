"""What a run on a page is compared with: choices that the URL remembers, and the analysis that follows from them."""

from collections.abc import Hashable

import streamlit as st

from gpuexplore.analysis.model import AnalyzedResult, Comparison, Context, CustomPeaks, PeakChoice, RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.comparison import baselines, comparison_for
from gpuexplore.analysis.utilization.best_results import best_of
from gpuexplore.analysis.utilization.peak_choice import known_bandwidths, known_peaks
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.devices.identity import device_key
from gpuexplore.model import Bandwidth, Device, Peak, Result, Run
from gpuexplore.ui.run.recorded import Beside, choose_beside, origin_of
from gpuexplore.ui.session import own_bandwidth, own_peaks, store
from gpuexplore.ui.url_widgets import select
from gpuexplore.units import UNKNOWN


def choose_comparison(run: Run) -> RunAnalysis:
    """Draw what the run can be compared with, and return its analysis by what is chosen."""
    speedup, peak, recording = st.columns(3, gap="medium")
    with recording:
        beside = choose_beside(run)
    if beside.about:
        st.caption(beside.about)
    context = _context(run, beside)
    with speedup:
        baseline = select("Speedup over", "baseline", list(baselines(run.experiment)))
    default = _analysis(run, comparison_for(run.experiment, baseline), context)
    if default.fastest is None:
        return default
    with peak:
        kind = _choose_peak(default.fastest, default.context)
    return _analysis(run, comparison_for(run.experiment, baseline, kind), context) if kind else default


def _choose_peak(fastest: AnalyzedResult, context: Context) -> str:
    """Draw the choice of a peak: the default one first, then the known ones, then the unknown ones with a dash."""
    default = fastest.peak if fastest.flop_count else fastest.bandwidth
    texts = {"": f"{_label(default, fastest)} (default)" if default.peak else f"{UNKNOWN} (default)"}
    for choice in sorted(_choices(fastest, context), key=lambda choice: choice.peak is None):
        texts[choice.kind] = f"{_label(choice, fastest)}{'' if choice.peak else f': {UNKNOWN}'}"
    title = "MFU relative to" if fastest.flop_count else "Memory rate relative to"
    return select(title, "peak", list(texts), shown=lambda kind: texts[kind])


def _choices(fastest: AnalyzedResult, context: Context) -> tuple[PeakChoice[Peak] | PeakChoice[Bandwidth], ...]:
    known = known_peaks if fastest.flop_count else known_bandwidths
    return known(fastest.result, context)


def _label(choice: PeakChoice[Peak] | PeakChoice[Bandwidth], fastest: AnalyzedResult) -> str:
    source = PEAK_SOURCES[choice.kind]
    label = source.label if fastest.flop_count else source.bandwidth_label
    return f"{label[0].upper()}{label[1:]}"


def _analysis(run: Run, comparison: Comparison, context: Context) -> RunAnalysis:
    """Return the analysis, made anew only when a result came or something was chosen."""
    key: Hashable = (len(run.results), run.active, comparison.baseline)
    held: dict[object, tuple[Hashable, Context, RunAnalysis]] = st.session_state.setdefault(f"analysis.{run.id}", {})
    if comparison.peak_kind in held:
        known, known_context, analysis = held[comparison.peak_kind]
        if known == key and known_context == context:
            return analysis
    found = analyze(run.results, comparison, context, running=run.active)
    held[comparison.peak_kind] = key, context, found
    return found


def _context(run: Run, beside: Beside) -> Context:
    """Return the visitor's custom peaks, what was measured on these devices before, and what is shown beside."""
    devices = {device_key(device): device for device in _devices((*run.results, *beside.results))}
    custom = {key: CustomPeaks(own_peaks(device), own_bandwidth(device)) for key, device in devices.items()}
    earlier = best_of(result for device in devices.values() for result in _earlier(run, device))
    return Context(custom, earlier, beside.results, origin_of(run))


def _devices(results: tuple[Result, ...]) -> list[Device]:
    return [result.environment.device for result in results if result.environment]


def _earlier(run: Run, device: Device) -> tuple[Result, ...]:
    """Return what earlier runs measured on a device without measured ceilings; read once for each run on the page."""
    if any(peak.kind == "measured_ceiling" for peak in device.peaks):
        return ()
    key = f"earlier.{run.id}.{device_key(device)}.{run.active}"
    if key not in st.session_state:
        st.session_state[key] = best_of(result for _, result in store().measured_results(device))
    found: tuple[Result, ...] = st.session_state[key]
    return found
