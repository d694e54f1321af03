"""Why a share can be above 100 %: it is never hidden and never cut, so each kind of peak has its sentence."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gpuexplore.analysis.utilization.plausibility import held_over_printed
from gpuexplore.analysis.utilization.utilization import (
    BANDWIDTH_KINDS,
    PEAK_KINDS,
    bandwidth_share,
    compute_share,
    held_clock_hz,
)
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.model import Bandwidth, Peak, PeakKind, Result
from gpuexplore.units import format_percent, format_si

READING = 1.03  # of a clock that moves while it is read


def why_above_peak(result: Result, peak: Peak | None) -> str | None:
    """Return why this result is above `peak`, in a sentence; None when it is not."""
    share = compute_share(result, peak)
    if peak is None or share is None or share <= 1:
        return None
    return f"{format_percent(share)} of {PEAK_KINDS[peak.kind]}: {WHY[peak.kind](result, peak, share)}."


def why_above_bandwidth(result: Result, bandwidth: Bandwidth | None) -> str | None:
    """Return why this result is above the memory's `bandwidth`, in a sentence; None when it is not."""
    share = bandwidth_share(result, bandwidth)
    if bandwidth is None or share is None or share <= 1:
        return None
    why = WHY_MEMORY.get(bandwidth.kind, "the figure is too low")
    return (
        f"{format_percent(share)} of {BANDWIDTH_KINDS[bandwidth.kind]}: caches delivered part of the bytes, or {why}."
    )


def _clock(result: Result, peak: Peak, share: float) -> str:
    """Explain a peak that is printed for a clock, with the clock that was held where it is known."""
    boost, held_hz = held_over_printed(result, peak), held_clock_hz(result)
    if boost is None or held_hz is None:
        if share > FAR_ABOVE:
            return "no device boosts so far past its printed clock, so the measurement or the peak is wrong"
        return "devices, GeForce cards most of all, run faster than the clock their peak is printed for"
    held, printed = format_si(held_hz, "Hz"), format_si(held_hz / boost, "Hz")
    at_held = share / boost
    if at_held <= READING:
        return (
            f"it held {held}, and the peak is printed for {printed}; at the held clock it is {format_percent(at_held)}"
        )
    return f"the clock it held, {held} where {printed} is printed, explains too little: measurement or peak is wrong"


WHY: Mapping[PeakKind, Callable[[Result, Peak, float], str]] = MappingProxyType(
    {
        "datasheet": _clock,
        "formula": _clock,
        "held_clock": lambda *_: "the clock was read once, as the sampling ended, and may have been higher before",
        "measured_ceiling": lambda *_: "a ceiling is the best that was measured before, and this is better",
        "published": lambda *_: "others published less, for another shape, at another clock or with an older library",
        "own": lambda *_: "the number you entered is below what this device does, so check it",
    }
)
WHY_MEMORY: Mapping[PeakKind, str] = MappingProxyType(
    {
        "datasheet": "the measurement is wrong",
        "formula": "the memory clock the driver states is too low",
        "measured_ceiling": "the ceiling is too low: it is the best that was measured before",
        "own": "the number you entered is too low",
    }
)
