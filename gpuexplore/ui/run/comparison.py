"""What a run on a page is compared with: choices that the URL remembers, and the analysis that follows from them."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gpuexplore.analysis.model import AnalyzedResult, Comparison, Context, CustomPeaks, PeakChoice, RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.utilization.best_results import best_of
from gpuexplore.analysis.utilization.peak_choice import baselines, comparison_for, known_bandwidths, known_peaks
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.devices.identity import device_key
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Bandwidth, Device, Peak, Result, Run
from gpuexplore.ui import link
from gpuexplore.ui.run.recorded import Beside, choose_beside, origin_of
from gpuexplore.ui.session import newest_result, own_peaks, store
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.url_widgets import select
from gpuexplore.units import UNKNOWN

MOST_MADE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """An analysis of a run with everything that was made of it: one object for all who look at the same.

    Attributes:
        choice: what decides how the run is drawn, its results aside.
        beside: whose results are drawn beside it, as Markdown; empty for nobody's.
        made: charts, tables and texts, by what they are.
    """

    analysis: RunAnalysis
    choice: Hashable
    beside: str = ""
    made: Shared[Any] = field(default_factory=lambda: Shared(MOST_MADE))


@dataclass(frozen=True, slots=True)
class _View:
    """What a visitor looks at: a run, what is shown beside, and the visitor's own peaks by the key of the device."""

    run: Run
    beside: Beside
    own: tuple[tuple[str, CustomPeaks], ...]
    devices: tuple[Device, ...]


DRAWN: Shared[Drawn] = Shared(60)
RUN_DEVICES: Shared[tuple[Device, ...]] = Shared(200)
EARLIER: Shared[tuple[Result, ...]] = Shared(200)


def choose_comparison(run: Run) -> Drawn:
    """Draw what the run can be compared with, and return what is drawn of it by what is chosen."""
    beside = choose_beside(run)
    view = _view(run, beside)
    baseline = select("Speedup over", "baseline", list(baselines(run.experiment)))
    default = _drawn(view, comparison_for(run.experiment, baseline))
    if default.analysis.fastest is None:
        return default
    kind = _choose_peak(default, default.analysis.fastest)
    return _drawn(view, comparison_for(run.experiment, baseline, kind)) if kind else default


def as_linked(run: Run) -> Callable[[], RunAnalysis]:
    """Return what analyzes the run, when it is called, by the baseline and the peak that the URL names."""
    given = link.parameters()
    try:
        comparison = comparison_for(run.experiment, given.get("baseline", ""), given.get("peak", ""))
    except InvalidInput:  # the page names it
        comparison = comparison_for(run.experiment)
    view = _view(run, Beside())
    return lambda: _drawn(view, comparison).analysis


def _choose_peak(default: Drawn, fastest: AnalyzedResult) -> str:
    """Draw the choice of a peak: the default one first, then the known ones, then the unknown ones with a dash."""
    texts = default.made.get("peaks", lambda: _peak_texts(fastest, default.analysis.context))
    title = "MFU relative to" if fastest.flop_count else "Memory rate relative to"
    return select(title, "peak", list(texts), shown=lambda kind: texts[kind])


def _peak_texts(fastest: AnalyzedResult, context: Context) -> dict[str, str]:
    default = fastest.peak if fastest.flop_count else fastest.bandwidth
    texts = {"": f"{_label(default, fastest)} (default)" if default.peak else f"{UNKNOWN} (default)"}
    for choice in sorted(_choices(fastest, context), key=lambda choice: choice.peak is None):
        texts[choice.kind] = f"{_label(choice, fastest)}{'' if choice.peak else f': {UNKNOWN}'}"
    return texts


def _choices(fastest: AnalyzedResult, context: Context) -> tuple[PeakChoice[Peak] | PeakChoice[Bandwidth], ...]:
    known = known_peaks if fastest.flop_count else known_bandwidths
    return known(fastest.result, context)


def _label(choice: PeakChoice[Peak] | PeakChoice[Bandwidth], fastest: AnalyzedResult) -> str:
    source = PEAK_SOURCES[choice.kind]
    label = source.label if fastest.flop_count else source.bandwidth_label
    return f"{label[0].upper()}{label[1:]}"


def _view(run: Run, beside: Beside) -> _View:
    key = (run.id, run.progress.measured, beside.name)
    devices = RUN_DEVICES.get(key, lambda: _devices((*run.results, *beside.results)))
    return _View(run, beside, tuple((device_key(device), own_peaks(device)) for device in devices), devices)


def _drawn(view: _View, comparison: Comparison) -> Drawn:
    """Return what is drawn of a view, made when the first visitor looks at it after a result came or a choice."""
    run, choice = view.run, (view.run.id, comparison, view.beside.name, view.own)
    known = tuple(_known_as_of(run, device) for device in view.devices)
    return DRAWN.get(
        (choice, run.progress.done, run.progress.provisional, run.active, known),
        lambda: Drawn(analyze(run.results, comparison, _context(view), running=run.active), choice, view.beside.about),
    )


def _context(view: _View) -> Context:
    """Return the visitor's custom peaks, what was measured on these devices before, and what is shown beside."""
    earlier = best_of(result for device in view.devices for result in _earlier(view.run, device))
    return Context(dict(view.own), earlier, view.beside.results, origin_of(view.run))


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
