"""The comparison of a run on a page: choices that the URL remembers, and the analysis that follows from them."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gpuexplore.analysis.model import AnalyzedResult, Comparison, Context, PeakChoice, RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.utilization import (
    PEAK_SOURCES,
    baselines,
    best_of,
    comparison_for,
    known_bandwidths,
    known_peaks,
)
from gpuexplore.core import UNKNOWN, Bandwidth, Device, InvalidInput, Peak, Result, Run
from gpuexplore.hardware.identity import device_key
from gpuexplore.ui import link
from gpuexplore.ui.run.recorded import RecordedOverlay, choose_overlay, origin_of
from gpuexplore.ui.session import newest_result, own_peaks, store
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.url_widgets import select


@dataclass(frozen=True, slots=True, eq=False)
class RunView:
    """An analysis of a run with everything that was made of it: one object for all who look at the same.

    Attributes:
        choice: what decides how the run is drawn, its results aside.
        overlay: the recording that is drawn with it, in words, as Markdown; empty for none.
        made: charts, tables and texts, by what they are.
    """

    analysis: RunAnalysis
    choice: Hashable
    overlay: str = ""
    made: Shared[Any] = field(default_factory=lambda: Shared(100))


DRAWN: Shared[RunView] = Shared(60)
RUN_DEVICES: Shared[tuple[Device, ...]] = Shared(200)
EARLIER: Shared[tuple[Result, ...]] = Shared(200)


def choose_comparison(run: Run) -> RunView:
    """Draw what the run can be compared with, and return what is drawn of it by what is chosen."""
    drawn_by = _drawn_by(run, choose_overlay(run))
    baseline = select("Speedup over", "baseline", list(baselines(run.experiment)))
    default = drawn_by(comparison_for(run.experiment, baseline))
    if default.analysis.fastest is None:
        return default
    fastest = default.analysis.fastest
    texts = default.made.get("peaks", lambda: _peak_texts(fastest, default.analysis.context))
    title = "MFU relative to" if fastest.flop_count else "Memory rate relative to"
    kind = select(title, "peak", list(texts), shown=lambda kind: texts[kind])
    return drawn_by(comparison_for(run.experiment, baseline, kind)) if kind else default


def as_linked(run: Run) -> Callable[[], RunAnalysis]:
    """Return what analyzes the run, when it is called, by the baseline and the peak that the URL names."""
    given = link.parameters()
    try:
        comparison = comparison_for(run.experiment, given.get("baseline", ""), given.get("peak", ""))
    except InvalidInput:  # the page names it
        comparison = comparison_for(run.experiment)
    drawn_by = _drawn_by(run, RecordedOverlay())
    return lambda: drawn_by(comparison).analysis


def _peak_texts(fastest: AnalyzedResult, context: Context) -> dict[str, str]:
    """Return the choices of a peak: the default one first, then the known ones, then the unknown ones with a dash."""
    default = fastest.peak if fastest.flop_count else fastest.bandwidth
    choices: tuple[PeakChoice[Peak] | PeakChoice[Bandwidth], ...] = known_peaks(fastest.result, context)
    if not fastest.flop_count:
        choices = known_bandwidths(fastest.result, context)
    texts = {"": f"{_label(default, fastest)} (default)" if default.peak else f"{UNKNOWN} (default)"}
    for choice in sorted(choices, key=lambda choice: choice.peak is None):
        texts[choice.kind] = f"{_label(choice, fastest)}{'' if choice.peak else f': {UNKNOWN}'}"
    return texts


def _label(choice: PeakChoice[Peak] | PeakChoice[Bandwidth], fastest: AnalyzedResult) -> str:
    source = PEAK_SOURCES[choice.kind]
    label = source.label if fastest.flop_count else source.bandwidth_label
    return f"{label[0].upper()}{label[1:]}"


def _drawn_by(run: Run, overlay: RecordedOverlay) -> Callable[[Comparison], RunView]:
    """Return a function that draws a run and its overlay for this visitor, by what the run is compared with.

    It is made when the first visitor looks at it after a result came or a choice.
    """
    key = (run.id, run.progress.measured, overlay.name)
    devices = RUN_DEVICES.get(key, lambda: _devices((*run.results, *overlay.results)))
    own = tuple((device_key(device), own_peaks(device)) for device in devices)

    def context() -> Context:
        """Return the visitor's custom peaks, what was measured on these devices before, and the overlay."""
        earlier = best_of(result for device in devices for result in _earlier(run, device))
        return Context(dict(own), earlier, overlay.results, origin_of(run))

    def drawn(comparison: Comparison) -> RunView:
        choice = (run.id, comparison, overlay.name, own)
        known = tuple(_known_as_of(run, device) for device in devices)
        return DRAWN.get(
            (choice, run.progress.done, run.progress.provisional, run.active, known),
            lambda: RunView(analyze(run.results, comparison, context(), running=run.active), choice, overlay.about),
        )

    return drawn


def _devices(results: Iterable[Result]) -> tuple[Device, ...]:
    """Return each device once, as the last result knows it."""
    found = [result.environment.device for result in results if result.environment]
    return tuple({device_key(device): device for device in found}.values())


def _earlier(run: Run, device: Device) -> tuple[Result, ...]:
    """Return what other runs measured on a device without measured ceilings."""
    known = _known_as_of(run, device)
    if known is None:
        return ()
    key = (store(), device_key(device), known)
    return EARLIER.get(key, lambda: best_of(result for _, result in store().measured_results(device)))


def _known_as_of(run: Run, device: Device) -> Hashable:
    """Return what decides which earlier results count: the newest there is, while a run is measured always the same.

    None for a device with measured ceilings, for which none count.
    """
    if any(peak.kind == "measured_ceiling" for peak in device.peaks):
        return None
    return run.id if run.active else newest_result()
