"""Why a fraction can be above 100 %: it is never hidden and never cut; each source of peaks has its sentence."""

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.utilization import bandwidth_utilization, mfu
from gpuexplore.model import Bandwidth, Peak, Result
from gpuexplore.units import format_percent


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
