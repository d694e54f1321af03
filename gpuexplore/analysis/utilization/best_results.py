"""The plausible results and the best of them on each device, and why some are above what they are compared with.

The comparison of a result, as a user typed it: its baseline, and the peak of a kind, or why that is unknown.
"""

from collections.abc import Callable, Iterable

from gpuexplore.analysis.model import Comparison, Context, P, PeakChoice
from gpuexplore.analysis.speedup import default_baseline
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES, PeakSource, measured_over_rated
from gpuexplore.analysis.utilization.utilization import (
    arithmetic_of,
    bandwidth_utilization,
    best_rate,
    byte_count,
    bytes_from_memory,
    default_bandwidth,
    default_peak,
    device_of,
    is_large_product,
    is_stream,
    mfu,
)
from gpuexplore.core import (
    Bandwidth,
    Device,
    Experiment,
    InvalidInput,
    Peak,
    PeakKind,
    Result,
    Unit,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
)
from gpuexplore.hardware.identity import UnitKey, unit_key
from gpuexplore.measure.flags import FAR_ABOVE, FAR_ABOVE_A_CEILING, fastest_cache


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
    return _choice(
        source.kind, default_peak(result), device_of(result), lambda device: source.find_peak(result, device, context)
    )


def _bandwidth_of_kind(source: PeakSource, result: Result, context: Context) -> PeakChoice[Bandwidth]:
    own = default_bandwidth(result)
    return _choice(source.kind, own, device_of(result), lambda device: source.find_bandwidth(result, device, context))


def _choice(kind: PeakKind, own: P | None, device: Device | None, find: Callable[[Device], P | str]) -> PeakChoice[P]:
    """Return the device's own figure where it is of that kind, else what the source finds."""
    if device is None:
        return PeakChoice(kind, None, "the result does not name its device")
    found = own if own is not None and own.kind == kind else find(device)
    return PeakChoice(kind, None, found) if isinstance(found, str) else PeakChoice(kind, found)


def _no_peak(result: Result) -> str:
    dtype, unit = arithmetic_of(result)
    return f"no peak is known for {dtype} on {unit} units of this device: enter one on the page Devices"


# Plausibility of a rate: the excess over a hardware limit that clocks and caches can explain.


def is_plausible(result: Result) -> bool:
    """Return whether no default limit of its device proves this result's time wrong; one without a time is not."""
    peak = default_peak(result)
    bandwidth = default_bandwidth(result)
    above_peak = peak is not None and exceeds_peak_at_any_clock(result, peak)
    above_memory = bandwidth is not None and exceeds_bandwidth_of_any_cache(result, bandwidth)
    impossible = above_peak or above_memory or exceeds_fastest_cache(result)
    return result.measurement is not None and not impossible


def is_ranked(result: Result) -> bool:
    """Return whether a time can win and be compared: it can be, and rests on more than one sample."""
    return is_plausible(result) and result.measurement is not None and not result.measurement.is_single


def exceeds_peak_at_any_clock(result: Result, peak: Peak) -> bool:
    """Return whether no clock explains a rate above `peak`, nor a ceiling that was measured in a bad moment."""
    fraction = mfu(result, peak) or 0.0
    basis = PEAK_SOURCES[peak.kind].basis
    if basis == "measured":
        return fraction > FAR_ABOVE_A_CEILING
    return basis == "rated" and fraction / (measured_over_rated(result, peak) or 1.0) > FAR_ABOVE


def exceeds_bandwidth_of_any_cache(result: Result, bandwidth: Bandwidth) -> bool:
    """Return whether even what no cache can have delivered came faster than the memory's rated bandwidth."""
    surely = bytes_from_memory(result)
    if PEAK_SOURCES[bandwidth.kind].basis != "rated" or surely is None or result.measurement is None:
        return False
    return surely / result.measurement.median_s > FAR_ABOVE * bandwidth.bytes_per_s


def exceeds_fastest_cache(result: Result) -> bool:
    """Return whether bytes came faster than the fastest cache of its device gives them, as it was measured."""
    device = device_of(result)
    roof = fastest_cache(device) if device else None
    if roof is None or result.measurement is None:
        return False
    return byte_count(result.case) / result.measurement.median_s > FAR_ABOVE_A_CEILING * roof.bandwidth.bytes_per_s


def exceeded_peak(flop_count: float, time_s: float, flop_per_s: float | None) -> str | None:
    """Return the rated peak that so many FLOPs in `time_s` are far above, in words; None when it proves nothing wrong.

    Args:
        flop_count: of the work.
        time_s: as stated.
        flop_per_s: the peak of the device for the dtype; None is unknown.
    """
    if flop_per_s is not None and flop_count / time_s > FAR_ABOVE * flop_per_s:
        return f"it computes at most {format_flop_per_s(flop_per_s)}"
    return None


def exceeded_bandwidth(
    byte_count: float, time_s: float, bytes_per_s: float | None, cache_bytes: int | None
) -> str | None:
    """Return the same of the memory's rated bandwidth.

    Args:
        byte_count: that the work moves at least.
        time_s: as stated.
        bytes_per_s: the bandwidth; None is unknown.
        cache_bytes: that caches can have delivered instead of the memory; None is unknown.
    """
    if bytes_per_s is not None and cache_bytes is not None:
        surely = max(byte_count - cache_bytes, 0)
        if surely / time_s > FAR_ABOVE * bytes_per_s:
            return f"its memory gives at most {format_bytes_per_s(bytes_per_s)}"
    return None


_Key = tuple[UnitKey, str | None, Unit | None]


def best_of(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the fastest large product of each device, dtype and unit, and the fastest stream of each device."""
    best: dict[_Key, Result] = {}
    for result in results:
        key = _key(result)
        if key is not None and (key not in best or best_rate(result) > best_rate(best[key])) and is_ranked(result):
            best[key] = result
    return tuple(best.values())


def _key(result: Result) -> _Key | None:
    device = device_of(result)
    if device is None:
        return None
    if is_large_product(result):
        return (unit_key(device), *arithmetic_of(result))
    return (unit_key(device), None, None) if is_stream(result) else None


# Explanations of fractions above 100 %, which are never hidden or clipped; each source of peaks has its sentence.


def why_above_peak(result: Result, peak: Peak | None) -> str | None:
    """Return why this result is above `peak`, in a sentence; None when it is not."""
    fraction = mfu(result, peak)
    if peak is None or fraction is None or fraction <= 1:
        return None
    source = PEAK_SOURCES[peak.kind]
    return f"{format_percent(fraction)} of the {source.label}: {source.why_above(result, peak, fraction)}."


def why_above_bandwidth(result: Result, bandwidth: Bandwidth | None) -> str | None:
    """Return why this result is above the memory's `bandwidth`, in a sentence; None when it is not."""
    fraction = bandwidth_utilization(result, bandwidth)
    if bandwidth is None or fraction is None or fraction <= 1:
        return None
    source = PEAK_SOURCES[bandwidth.kind]
    return (
        f"{format_percent(fraction)} of the {source.bandwidth_label}: caches delivered part of the bytes, "
        f"or {source.why_above_bandwidth}."
    )
