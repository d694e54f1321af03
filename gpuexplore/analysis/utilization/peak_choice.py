"""The comparison of a result, as a user typed it: its baseline, and the peak of a kind, or why that is unknown."""

from gpuexplore.analysis.model import Comparison, Context, PeakChoice
from gpuexplore.analysis.speedup import default_baseline
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES, PeakSource
from gpuexplore.analysis.utilization.utilization import arithmetic_of, default_bandwidth, default_peak, device_of
from gpuexplore.core import Bandwidth, Experiment, InvalidInput, Peak, PeakKind, Result


def comparison_for(experiment: Experiment, baseline: str = "", peak: str = "") -> Comparison:
    """Return the comparison; an empty text stands for the default.

    Raises:
        InvalidInput: the baseline is not among the experiment's implementations and dtypes, or no such kind of peak.
    """
    accepted = baselines(experiment)
    if baseline and baseline not in accepted:
        raise InvalidInput.of("baseline", baseline, accepted)
    return Comparison(baseline or accepted[0], _peak_kind(peak))


def baselines(experiment: Experiment) -> tuple[str, ...]:
    """Return what a speedup can be over: the default first, then the other implementations, then the dtypes."""
    default = default_baseline(experiment.operation, experiment.implementations)
    return (*sorted(experiment.implementations, key=lambda name: name != default), *experiment.dtypes)


def _peak_kind(text: str) -> PeakKind | None:
    """Return the kind of peak that a user named; None for an empty text: the default one.

    Raises:
        InvalidInput: no such kind; names those there are.
    """
    found = next((kind for kind in PEAK_SOURCES if kind == text), None)
    if text and found is None:
        raise InvalidInput.of("kind of peak", text, PEAK_SOURCES)
    return found


def reference_peak(result: Result, comparison: Comparison, context: Context) -> PeakChoice[Peak]:
    """Return what this result's FLOP/s are compared with."""
    if comparison.peak_kind is not None:
        return _peak_of_kind(PEAK_SOURCES[comparison.peak_kind], result, context)
    peak = default_peak(result, context.custom(device_of(result)).compute)
    return PeakChoice(peak.kind, peak) if peak else PeakChoice("datasheet", None, _no_peak(result))


def reference_bandwidth(result: Result, comparison: Comparison, context: Context) -> PeakChoice[Bandwidth]:
    """Return what this result's bytes/s are compared with."""
    if comparison.peak_kind is not None:
        return _bandwidth_of_kind(PEAK_SOURCES[comparison.peak_kind], result, context)
    bandwidth = default_bandwidth(result, context.custom(device_of(result)).bandwidth)
    return (
        PeakChoice(bandwidth.kind, bandwidth)
        if bandwidth
        else PeakChoice(
            "datasheet", None, "no memory bandwidth is known for this device: enter one on the page Devices"
        )
    )


def known_peaks(result: Result, context: Context) -> tuple[PeakChoice[Peak], ...]:
    """Return what this result's FLOP/s can be compared with, one choice for every kind of peak."""
    return tuple(_peak_of_kind(source, result, context) for source in PEAK_SOURCES.values())


def known_bandwidths(result: Result, context: Context) -> tuple[PeakChoice[Bandwidth], ...]:
    """Return what this result's bytes/s can be compared with, one choice for every kind of peak."""
    return tuple(_bandwidth_of_kind(source, result, context) for source in PEAK_SOURCES.values())


def _peak_of_kind(source: PeakSource, result: Result, context: Context) -> PeakChoice[Peak]:
    """Return the device's own peak where it is of that kind, else what the source finds."""
    device = device_of(result)
    own = default_peak(result)
    if device is None:
        return PeakChoice(source.kind, None, "the result does not name its device")
    found = own if own is not None and own.kind == source.kind else source.find_peak(result, device, context)
    return PeakChoice(source.kind, None, found) if isinstance(found, str) else PeakChoice(source.kind, found)


def _bandwidth_of_kind(source: PeakSource, result: Result, context: Context) -> PeakChoice[Bandwidth]:
    device = device_of(result)
    own = default_bandwidth(result)
    if device is None:
        return PeakChoice(source.kind, None, "the result does not name its device")
    found = own if own is not None and own.kind == source.kind else source.find_bandwidth(result, device, context)
    return PeakChoice(source.kind, None, found) if isinstance(found, str) else PeakChoice(source.kind, found)


def _no_peak(result: Result) -> str:
    dtype, unit = arithmetic_of(result)
    return f"no peak is known for {dtype} on {unit} units of this device: enter one on the page Devices"
