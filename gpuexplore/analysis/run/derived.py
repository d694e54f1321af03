"""Everything that is derived from a run's results, once: reports, tables, charts and sentences read it here."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.analysis.run.speedup import Speedup, default_baseline, speedups
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against, chosen, chosen_bandwidth, knowing
from gpuexplore.analysis.utilization.rates import byte_count, bytes_per_s, flop_count, flop_per_s
from gpuexplore.analysis.utilization.utilization import bandwidth_share, compute_share
from gpuexplore.model import Bandwidth, Condition, Peak, Result


@dataclass(frozen=True, slots=True)
class Figures:
    """What follows from one result and its neighbours; None is unknown or not applicable.

    Attributes:
        peak: the compute peak it is held against.
        bandwidth: the memory bandwidth of its device.
        mfu: share of `peak`, of one.
        bandwidth_utilization: share of `bandwidth`, of one; None when a cache delivered the data.
        peak_unknown, bandwidth_unknown: why there is none of that kind.
        above_peak, above_bandwidth: why the share is above 100 %, where it is.
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
    peak_unknown: str | None
    bandwidth_unknown: str | None
    above_peak: str | None
    above_bandwidth: str | None
    speedup: Speedup | None


CONDITIONS: dict[Condition, str] = {
    "cold": "from cold caches",
    "warm": "from warm caches",
    "graph": "replayed from a graph, without launches",
}


def figures(results: Sequence[Result], *, baseline: str | None = None, against: Against = USUAL) -> tuple[Figures, ...]:
    """Return the figures of each result, in order.

    Args:
        baseline: an implementation or a dtype; None is the operation's first implementation here.
        against: what the results are held against; `results` are among the known ones.
    """
    name = baseline or default_baseline(results)
    ratios = speedups(results, name) if name else {}
    known = knowing(against, results)
    return tuple(_of_one(result, known, ratios.get(result.case) if result.measurement else None) for result in results)


def _of_one(result: Result, against: Against, speedup: Speedup | None) -> Figures:
    compute, memory = chosen(result, against), chosen_bandwidth(result, against)
    return Figures(
        flop_count=flop_count(result.case),
        byte_count=byte_count(result.case),
        flop_per_s=flop_per_s(result),
        bytes_per_s=bytes_per_s(result),
        peak=compute.peak,
        bandwidth=memory.peak,
        mfu=compute_share(result, compute.peak),
        bandwidth_utilization=bandwidth_share(result, memory.peak),
        peak_unknown=compute.reason,
        bandwidth_unknown=memory.reason,
        above_peak=why_above_peak(result, compute.peak),
        above_bandwidth=why_above_bandwidth(result, memory.peak),
        speedup=speedup,
    )
