"""What a list says of a run: its best rate, which share of the peak that is, and how far to trust its times."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.best_results import is_ranked
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.utilization import has_nominal_flops, shape_label
from gpuexplore.model import FlagName, Result, RunSummary
from gpuexplore.run_summary import Quality

FEW = 0.1  # of the results may carry a flag in a clean run
FLAGS: Mapping[Quality, tuple[FlagName, ...]] = MappingProxyType(
    {"contended": ("contended", "contention_unknown"), "noisy": ("noisy", "drifted", "throttled")}
)
MEANS: Mapping[Quality, str] = MappingProxyType(
    {
        "clean": "hardly any measurement was disturbed",
        "noisy": "times varied while they were measured",
        "contended": "other work ran at the same time, or whether it did is unknown",
    }
)


def summary_of(analysis: RunAnalysis) -> RunSummary:
    """Return what a list says of a run with these results."""
    measured = [analyzed for analyzed in analysis.results if analyzed.measurement]
    quality, why = quality_of([analyzed.result for analyzed in measured])
    by_memory = is_memory_bound(analysis)
    best = max(
        (analyzed for analyzed in measured if is_ranked(analyzed.result)),
        key=lambda analyzed: _rate(analyzed, by_memory) or 0.0,
        default=None,
    )
    if best is None or _rate(best, by_memory) is None:
        return RunSummary(quality=quality, why=why)
    reference = best.default_bandwidth if by_memory else best.default_peak
    return RunSummary(
        best=f"{best.label}, {shape_label(best.case.shape)}",
        rate=_rate(best, by_memory),
        unit="B/s" if by_memory else "FLOP/s",
        share=best.default_bandwidth_utilization if by_memory else best.default_mfu,
        peak=_peak(reference.kind, by_memory=by_memory) if reference else None,
        quality=quality,
        why=why,
    )


def quality_of(results: Sequence[Result]) -> tuple[Quality | None, str | None]:
    """Return how far the times of measured results can be trusted, and the evidence; None without any."""
    if not results:
        return None, None
    for quality, names in FLAGS.items():
        found = [flag for result in results for flag in result.flags if flag.name in names]
        count = sum(any(flag.name in names for flag in result.flags) for result in results)
        if count > FEW * len(results):
            worst = max(found, key=lambda flag: flag.size or 0.0)
            return quality, f"{MEANS[quality]}: {count} of {len(results)} measurements, e.g. {worst.evidence}"
    flagged = sum(any(flag.name in sum(FLAGS.values(), ()) for flag in result.flags) for result in results)
    return "clean", f"{MEANS['clean']}: {flagged} of {len(results)}"


def is_memory_bound(analysis: RunAnalysis) -> bool:
    """Return whether what was reached is better told in bytes per second than in FLOP/s."""
    fastest = analysis.fastest
    if fastest is None or fastest.bound == "compute":
        return False
    counts_nothing = not fastest.flop_count or has_nominal_flops(fastest.case)
    unknown = fastest.limits.one_thread and not fastest.operation.is_matrix_product
    return fastest.bound in ("memory", "cache") or counts_nothing or unknown


def _rate(analyzed: AnalyzedResult, by_memory: bool) -> float | None:
    return analyzed.bytes_per_s if by_memory else analyzed.flop_per_s


def _peak(kind: str, *, by_memory: bool) -> str:
    source = next(source for name, source in PEAK_SOURCES.items() if name == kind)
    return source.bandwidth_label if by_memory else source.label
