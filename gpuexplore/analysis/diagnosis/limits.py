"""The limit of a result on the roofline, how near it came, and what would help.

A result is bound by a roof from `BOUND_FROM` of it on, if its interval lies there too. Below, the nearest roof is named
with what is known to take the rest; below a quarter no roof bounds it. A share that is not well known is a range.
"""

from dataclasses import replace

from gpuexplore.analysis.diagnosis.processors import (
    CLOSE_TO_A_LIMIT,
    faster_in_group,
    format_share,
    narrower_dtype,
    slow_blas,
    wave_tail,
)
from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.roofs import ridge_point
from gpuexplore.analysis.utilization import PEAK_SOURCES, arithmetic_of, has_nominal_flops
from gpuexplore.analysis.verdict import Estimate
from gpuexplore.core.units import (
    format_bytes_per_s,
    format_flop_per_s,
    format_intensity,
    format_percent,
    format_seconds,
)
from gpuexplore.measure.flags import FAR_ABOVE_A_CEILING

BOUND_FROM = 0.6
MORE_BY_THREADS = 1.2  # gain over one core below which a parallel program is not worth writing
ONE_CORE = "what one core can do"


def launch_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a result dominated by call overhead."""
    flag = analyzed.flag("launch_bound")
    if flag is None:
        return None
    sentence = (
        f"{analyzed.label} is launch-bound: call overhead is a large part of its time, so larger sizes gain most."
    )
    return Diagnosis("launch_bound", sentence, f"{flag.evidence}, and this one {format_seconds(analyzed.median_s)}")


def compute_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a compute-bound result, with its share of the peak."""
    peak = analyzed.limits.peak
    fraction = analyzed.compute_fraction
    if analyzed.bound != "compute" or peak is None or (analyzed.default_mfu or 0.0) > 1:
        return None
    if fraction is None or not _is_bound(fraction):
        return None
    whole = analyzed.default_peak.flop_per_s / peak.flop_per_s if analyzed.default_peak else 1.0
    beyond = _by_threads(analyzed, whole) or narrower_dtype(analyzed) or "only a faster device would help"
    label = _peak_label(analyzed)
    near = _near(analyzed, "compute-bound", fraction, label, beyond=beyond)
    rates = f"{format_flop_per_s(analyzed.flop_per_s)} of {format_flop_per_s(peak.flop_per_s)}"
    return Diagnosis(
        "compute_bound", near, f"{rates} ({label}), {format_percent(fraction.value)}; {_on_roofline(analyzed)}"
    )


def memory_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a memory-bound result, with its share of the bandwidth."""
    memory = analyzed.limits.memory
    fraction = analyzed.serving_fraction
    if analyzed.bound != "memory" or memory is None or (analyzed.default_bandwidth_utilization or 0.0) > 1:
        return None
    if fraction is None or not _is_bound(fraction):
        return None
    near = _near(analyzed, "memory-bound", fraction, _memory_label(analyzed), beyond=_fewer_bytes(analyzed))
    rates = f"{format_bytes_per_s(analyzed.bytes_per_s)} of {format_bytes_per_s(memory.bytes_per_s)}"
    return Diagnosis("memory_bound", near, f"{rates}{_of_the_device(analyzed)}; {_on_roofline(analyzed)}")


def cache_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a result served by a cache, with its share of that cache's bandwidth where it was measured."""
    if analyzed.bound != "cache":
        return None
    rate = analyzed.bytes_per_s
    most = analyzed.limits.serving
    resident = analyzed.cache_resident_reason
    fraction = analyzed.serving_fraction
    if fraction is None or most is None:
        sentence = f"{analyzed.label} is served by caches: {resident}."
        return Diagnosis("cache_bound", sentence, f"{format_bytes_per_s(rate)} from a cache; {_on_roofline(analyzed)}")
    if not _is_bound(fraction):
        return None
    label = ONE_CORE if analyzed.limits.one_thread else _serving_label(analyzed)
    near = _near(analyzed, "cache-bound", fraction, label, beyond=_fewer_bytes(analyzed))
    evidence = (
        f"{format_bytes_per_s(rate)} of {format_bytes_per_s(most.bytes_per_s)}; {resident}; {_on_roofline(analyzed)}"
    )
    return Diagnosis("cache_bound", near, evidence)


def below_limits(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a result far below all limits: the nearest limit, and the known causes."""
    nearest = _nearest(analyzed)
    if nearest is None or analyzed.bound == "overhead" or slow_blas(analyzed):
        return None
    fraction, of, rates = nearest
    if _is_bound(fraction) or fraction.value > FAR_ABOVE_A_CEILING:
        return None
    far = ", so no hardware limit bounds it" if fraction.value < 0.25 else ", its nearest limit"
    reaches = f"{analyzed.label} {_alone(analyzed, ' and')}reaches {format_share(fraction)} of {of}"
    return Diagnosis("below_limits", f"{reaches}{far}: {_lost(analyzed)}.", f"{rates}; {_on_roofline(analyzed)}")


def _nearest(analyzed: AnalyzedResult) -> tuple[Estimate, str, str] | None:
    """Return the largest fraction of a roof, of which one, and both rates; None: one that may bound it is unknown."""
    peak = analyzed.limits.peak
    serving = analyzed.limits.serving
    counts = _counts_flops(analyzed)
    found = list[tuple[Estimate, str, str]]()
    if (counts and peak is None) or (analyzed.bound == "cache" and serving is None):
        return None
    if counts and peak and (fraction := analyzed.compute_fraction):
        rates = f"{format_flop_per_s(analyzed.flop_per_s)} of {format_flop_per_s(peak.flop_per_s)}"
        found.append((fraction, _peak_label(analyzed), rates))
    if serving and (fraction := analyzed.serving_fraction):
        rates = f"{format_bytes_per_s(analyzed.bytes_per_s)} of {format_bytes_per_s(serving.bytes_per_s)}"
        found.append((fraction, _serving_label(analyzed), rates))
    return max(found, key=lambda roof: roof[0].value, default=None)


def _counts_flops(analyzed: AnalyzedResult) -> bool:
    """Return whether it has FLOPs, and they are no convention."""
    return bool(analyzed.flop_count) and not has_nominal_flops(analyzed.case)


def _lost(analyzed: AnalyzedResult) -> str:
    """Return the known causes of the rest of its time, the most certain first."""
    computed = arithmetic_of(analyzed.result)[0] if analyzed.flop_count else analyzed.case.dtype
    other = "another format" if computed == analyzed.case.dtype else computed  # where its library does not state it
    joining = f"starting and joining threads takes a large part of {format_seconds(analyzed.median_s or 0.0)}"
    environment = analyzed.result.environment
    several = environment is not None and (environment.threads or 1) > 1 and not analyzed.limits.one_thread
    short_s = 1e-4  # of several threads: starting and joining them takes microseconds
    causes = (
        (_is_converted(analyzed), f"it converts {analyzed.case.dtype} to {other} and back"),
        (has_nominal_flops(analyzed.case), "an exponential, a root or a division takes many instructions"),
        (analyzed.flag("throttled"), "its clock was throttled"),
        (analyzed.flag("contended"), "other programs ran at the same time"),
        (wave_tail(analyzed), "a last wave of blocks leaves much of the GPU idle"),
        (several and (analyzed.median_s or 0.0) < short_s, joining),
    )
    found = [words for holds, words in causes if holds]
    if faster := faster_in_group(analyzed):
        times, rival = faster
        found.append(f"{rival.case.implementation} does the same work {times} as fast, so its own code costs time")
    return " and ".join(found[:2]) or "its own instructions and stalls take the rest"


def _is_converted(analyzed: AnalyzedResult) -> bool:
    """Return whether its numbers are converted before and after arithmetic: emulated, or widened by its library."""
    if not analyzed.flop_count:
        return False
    return analyzed.flag("emulated") is not None or arithmetic_of(analyzed.result)[0] != analyzed.case.dtype


def one_thread(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a result of one of several cores whose single-core limit is unknown."""
    limits = analyzed.limits
    device = analyzed.device
    if not limits.one_thread or device is None or analyzed.median_s is None or analyzed.bound == "overhead":
        return None
    if limits.peak or (limits.memory and not _counts_flops(analyzed)):
        return None
    sentence = (
        f"{analyzed.label} runs on one thread, and the peaks of one core were not measured: how near it came to "
        "its limit is unknown."
    )
    return Diagnosis("one_thread", sentence, f"the peaks of this device are those of {device.cores or 'all'} cores")


def no_peak(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a result without a known peak."""
    if analyzed.median_s is None or analyzed.default_peak or not analyzed.flop_count:
        return None
    dtype, unit = arithmetic_of(analyzed.result)
    sentence = f"No peak is known for {analyzed.label} here, so there is no MFU: enter a peak to get one."
    return Diagnosis("no_peak", sentence, f"its arithmetic is in {dtype} on {unit} units")


def _is_bound(fraction: Estimate) -> bool:
    """Return whether a roof bounds a result: surely so near, and not passed by more than the roof is uncertain."""
    least = fraction.value if fraction.low is None or fraction.value >= CLOSE_TO_A_LIMIT else fraction.low
    return least >= BOUND_FROM and fraction.value <= FAR_ABOVE_A_CEILING


def _near(analyzed: AnalyzedResult, limit: str, fraction: Estimate, of: str, *, beyond: str) -> str:
    """Return how near a fraction is to its limit, and what would help, or how much the limit allows."""
    reached = f"{format_share(fraction)} of {of}"
    who = f"{analyzed.label} {_alone(analyzed)}"
    if fraction.value >= CLOSE_TO_A_LIMIT:
        return f"{who}is {limit} and close to the limit, {reached}: {beyond}."
    return f"{who}is {limit} and reaches {reached}: at the limit it would be {_gain(fraction)} as fast."


def _gain(fraction: Estimate) -> str:
    """Return how many times as fast it would be at its limit; a limit that may be reached allows none."""
    gain = fraction.inverse(1.0, "times")
    return format_share(replace(gain, low=max(gain.low or 0.0, min(1.0, gain.value))))


def _alone(analyzed: AnalyzedResult, joined: str = ",") -> str:
    return f"runs on one thread{joined} " if analyzed.limits.one_thread else ""


def _by_threads(analyzed: AnalyzedResult, whole: float) -> str | None:
    """Return the advice to use more cores, where they reach `whole` times what one does."""
    if not analyzed.limits.one_thread or whole < MORE_BY_THREADS:
        return None
    declared = analyzed.case.dtype in analyzed.implementation.one_thread
    return "several threads can do more" if declared else "its library uses several threads for larger arrays"


def _fewer_bytes(analyzed: AnalyzedResult) -> str:
    device = analyzed.device
    whole = MORE_BY_THREADS
    if device and device.bandwidth and device.one_thread and device.one_thread.bandwidth and analyzed.bound == "memory":
        whole = device.bandwidth.bytes_per_s / device.one_thread.bandwidth.bytes_per_s
    return (
        _by_threads(analyzed, whole)
        or narrower_dtype(analyzed)
        or "fusing several steps into one pass would help, as it moves fewer bytes"
    )


def _peak_label(analyzed: AnalyzedResult) -> str:
    peak = analyzed.limits.peak
    if analyzed.limits.one_thread or peak is None:
        return ONE_CORE
    half = "" if analyzed.operation.multiply_adds else "half "
    without = "" if analyzed.operation.multiply_adds else ", which counts multiply-adds"
    return f"{half}the {PEAK_SOURCES[peak.kind].label}{without}"


def _memory_label(analyzed: AnalyzedResult) -> str:
    if analyzed.limits.one_thread:
        return ONE_CORE
    return f"the memory bandwidth{' with ordinary stores' if _is_lowered(analyzed) else ''}"


def _serving_label(analyzed: AnalyzedResult) -> str:
    if analyzed.limits.one_thread:
        return f"the {'cache' if analyzed.cache_resident_reason else 'memory'} bandwidth of one core"
    return "the cache's bandwidth" if analyzed.cache_resident_reason else _memory_label(analyzed)


def _of_the_device(analyzed: AnalyzedResult) -> str:
    """Return the fraction of the whole memory bandwidth, where the limit is another one."""
    share = analyzed.default_bandwidth_utilization
    if share is None or not _is_lowered(analyzed):
        return ""
    threads = " of all cores" if analyzed.limits.one_thread else ""
    return f", {format_percent(share)} of the memory bandwidth{threads} with streaming stores"


def _is_lowered(analyzed: AnalyzedResult) -> bool:
    """Return whether its threads or its stores reach visibly less than the memory bandwidth of the device."""
    whole = analyzed.default_bandwidth
    memory = analyzed.limits.memory
    return whole is not None and memory is not None and memory.bytes_per_s < 0.99 * whole.bytes_per_s


def _on_roofline(analyzed: AnalyzedResult) -> str:
    """Return where it stands on the roofline of what delivers its data, as far as the roofs are known."""
    peak = analyzed.limits.peak
    bandwidth = analyzed.limits.serving
    intensity = f"intensity {format_intensity(analyzed.intensity)}"
    if peak is None or bandwidth is None:
        return intensity
    return f"{intensity}, ridge point {format_intensity(ridge_point(peak.flop_per_s, bandwidth.bytes_per_s))}"
