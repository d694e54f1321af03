"""Whether a run reaches a goal: derived from its results alone; those that cannot be true count for nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization.best_results import is_plausible, is_ranked
from gpuexplore.analysis.utilization.utilization import size_of
from gpuexplore.features.workshop.goals.kinds import GPU, Goal
from gpuexplore.units import format_percent, format_seconds

NEXT_SIZE = 2.0  # sizes that differ by more leave open where between them one overtakes the other
Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a run is worth for a goal.

    Attributes:
        value: what the goal is about, a fraction, seconds, a size or an error.
        passed: whether it reaches the goal.
        said: the value for a reader.
    """

    value: float
    passed: bool
    said: str


def judge(goal: Goal, analysis: RunAnalysis) -> Judged | None:
    """Return the best that a run reaches of a goal; None where nothing in it is about it."""
    judge_by, better = RULES[goal.kind.name]
    found = list(judge_by(goal, analysis))
    pick = min if better == "lower" else max
    return pick(found, key=lambda judged: judged.value) if found else None


def is_better(goal: Goal, this: Judged, other: Judged | None) -> bool:
    """Return whether somebody would rather show this than the other."""
    if other is None or this.passed != other.passed:
        return other is None or this.passed
    return this.value < other.value if RULES[goal.kind.name][1] == "lower" else this.value > other.value


def about(goal: Goal, analysis: RunAnalysis) -> Iterator[AnalyzedResult]:
    """Yield the results that a goal is about: of several samples, and not proved wrong by a limit of their device."""
    settings = goal.settings
    for analyzed in analysis.results:
        case = analyzed.case
        fits = case.operation == settings["operation"] and case.dtype == settings["dtype"]
        fits = fits and settings.get("size", str(size_of(case))) == str(size_of(case))
        fits = fits and settings.get("implementation", case.implementation) == case.implementation
        timed = goal.kind.name != "error"  # which rests on no clock
        if fits and analyzed.measurement is not None and (is_ranked if timed else is_plausible)(analyzed.result):
            yield analyzed


def _share(goal: Goal, analysis: RunAnalysis) -> Iterator[Judged]:
    by_memory = is_memory_bound(analysis)
    for analyzed in about(goal, analysis):
        share = analyzed.default_bandwidth_utilization if by_memory else analyzed.default_mfu
        if share is not None:
            yield Judged(share, share >= _percent(goal), f"{format_percent(share)} of the limit")


def _guess(goal: Goal, analysis: RunAnalysis) -> Iterator[Judged]:
    for analyzed in about(goal, analysis):
        if analyzed.median_s is not None:
            yield Judged(analyzed.median_s, True, format_seconds(analyzed.median_s))


def _kernel(goal: Goal, analysis: RunAnalysis) -> Iterator[Judged]:
    """Yield the rate of each kernel of ours as a share of the fastest library's on its device in the same run."""
    found = list(about(goal, analysis))
    for analyzed in found:
        rivals = [
            other.median_s
            for other in found
            if other.case.device == analyzed.case.device and other.implementation.calls_library and other.median_s
        ]
        if not analyzed.implementation.calls_library and rivals and analyzed.median_s:
            share = min(rivals) / analyzed.median_s
            said = f"{analyzed.case.implementation}, {format_percent(share)} of the library's rate"
            yield Judged(share, share >= _percent(goal), said)


def _error(goal: Goal, analysis: RunAnalysis) -> Iterator[Judged]:
    for analyzed in about(goal, analysis):
        accuracy = analyzed.result.accuracy
        if accuracy is not None and accuracy.relative_error is not None:
            error = accuracy.relative_error
            yield Judged(error, error < float(goal.settings["bound"]), f"relative error {error:.1e}")


def _overtake(goal: Goal, analysis: RunAnalysis) -> Iterator[Judged]:
    """Yield each size at which the other side is ahead for the first time, if the size before is near enough."""
    times = {side: _times(goal, analysis, side) for side in ("slower", "faster")}
    sizes = sorted(times["slower"].keys() & times["faster"].keys())
    for before, size in pairwise(sizes):
        was_behind = times["faster"][before] >= times["slower"][before]
        is_ahead = times["faster"][size] < times["slower"][size]
        if was_behind and is_ahead:
            near = size / before <= NEXT_SIZE
            yield Judged(size, near, f"between sizes {before:,} and {size:,}")


def _times(goal: Goal, analysis: RunAnalysis, side: str) -> Mapping[int, float]:
    """Return the shortest time of one side, by size."""
    times: dict[int, float] = {}
    for analyzed in about(goal, analysis):
        size = size_of(analyzed.case)
        if size is not None and analyzed.median_s and _is_of_side(analyzed, goal.settings[side]):
            times[size] = min(analyzed.median_s, times.get(size, analyzed.median_s))
    return times


def _is_of_side(analyzed: AnalyzedResult, side: str) -> bool:
    kind = analyzed.device.kind if analyzed.device else analyzed.case.device.partition(":")[0]
    return side in (analyzed.case.implementation, analyzed.case.device, kind) or (side == GPU and kind != "cpu")


def _percent(goal: Goal) -> float:
    return float(goal.settings["percent"]) / 100


Rule = Callable[[Goal, RunAnalysis], Iterator[Judged]]
RULES: Mapping[str, tuple[Rule, Better]] = {
    "share": (_share, "higher"),
    "overtake": (_overtake, "lower"),
    "guess": (_guess, "lower"),
    "kernel": (_kernel, "higher"),
    "error": (_error, "lower"),
}
