"""Everything that is derived from a run's results, once: reports, tables, charts and sentences read it here."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.analysis.comparison import Speedup, default_baseline, speedups
from gpuexplore.analysis.mfu import applicable_peak, bandwidth_utilization, known_bandwidth, mfu
from gpuexplore.analysis.rates import byte_count, bytes_per_s, flop_count, flop_per_s
from gpuexplore.model import Bandwidth, Condition, Peak, Result


@dataclass(frozen=True, slots=True)
class Figures:
    """What follows from one result and its neighbours; None is unknown or not applicable.

    Attributes:
        peak: the compute peak it is held against.
        bandwidth: the memory bandwidth of its device.
        mfu: share of `peak`, of one.
        bandwidth_utilization: share of `bandwidth`, of one; None when a cache delivered the data.
        speedup: against the baseline of the run.
    """

    flop_count: int
    byte_count: int
    flop_per_s: float | None
    bytes_per_s: float | None
    peak: Peak | None
    bandwidth: Bandwidth | None
    mfu: float | None
    bandwidth_utilization: float | None
    speedup: Speedup | None


CONDITIONS: dict[Condition, str] = {
    "cold": "from cold caches",
    "warm": "from warm caches",
    "graph": "replayed from a graph, without launches",
}


def figures(
    results: Sequence[Result], *, baseline: str | None = None, own_peaks: Sequence[Peak] = ()
) -> tuple[Figures, ...]:
    """Return the figures of each result, in order.

    Args:
        baseline: an implementation or a dtype; None is the operation's first implementation here.
        own_peaks: peaks a user entered, instead of the device's.
    """
    name = baseline or default_baseline(results)
    ratios = speedups(results, name) if name else {}
    return tuple(
        Figures(
            flop_count=flop_count(one.case),
            byte_count=byte_count(one.case),
            flop_per_s=flop_per_s(one),
            bytes_per_s=bytes_per_s(one),
            peak=applicable_peak(one, own_peaks),
            bandwidth=known_bandwidth(one),
            mfu=mfu(one, own_peaks),
            bandwidth_utilization=bandwidth_utilization(one),
            speedup=ratios.get(one.case) if one.measurement else None,
        )
        for one in results
    )
