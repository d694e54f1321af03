"""Speedups with their intervals: how many times as fast a result is as its baseline.

A speedup is the ratio of two medians. Implementations of one group are sampled in turns, so sample i of both comes
from round i, and the interval of the ratios round by round is free of drift that hits both. Across dtypes or devices
nothing is paired: the interval is the widest that the two intervals of the medians allow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import hypot

from gpuexplore.analysis.model import Speedup
from gpuexplore.devices.identity import is_namesake, same_device
from gpuexplore.dtypes import DTYPES
from gpuexplore.model import Case, Measurement, Result
from gpuexplore.operations import operation_named
from gpuexplore.statistics import interval_of_few, median, median_interval, widened

DISAGREES_ABOVE = 1.01  # times the interval of the paired ratios: what lies outside it by less is rounding
TIE_WITHIN = 1.1  # medians further apart are never called a tie, however scattered their samples


def default_baseline(operation: str, implementations: Iterable[str]) -> str | None:
    """Return the first of `implementations` in the order of `operation`; None where there are none."""
    asked = set(implementations)
    names = (implementation.name for implementation in operation_named(operation).implementations)
    return next((name for name in names if name in asked), None)


def speedups(results: Sequence[Result], baseline: str, elsewhere: Sequence[Result] = ()) -> dict[Case, Speedup]:
    """Return the speedup of every measured case that has a measured baseline.

    Args:
        baseline: an implementation (same dtype, shape and device; where it cannot run on that device,
            its result on another one) or a dtype (same implementation, shape and device).
        elsewhere: results measured apart from these, whose baseline counts where `results` have none; never paired.
    """
    measured = {result.case: result for result in results if result.measurement}
    anywhere = _without_device(results)
    apart = {} if baseline in DTYPES else _without_device(elsewhere)
    found: dict[Case, Speedup] = {}
    for case, result in measured.items():
        wanted = replace(case, dtype=baseline) if baseline in DTYPES else replace(case, implementation=baseline)
        nearest = measured.get(wanted) or (None if baseline in DTYPES else anywhere.get(replace(wanted, device="")))
        if nearest is not None and not _on_a_namesake(result, nearest):
            found[case] = speedup(result, nearest, name=_name(case, nearest.case, baseline))
            continue
        other = nearest or apart.get(replace(wanted, device=""))
        if other is not None and result.measurement and other.measurement:
            found[case] = ratio(result.measurement, other.measurement, f"{baseline} on {_place(other, result)}")
    return found


def _on_a_namesake(result: Result, baseline: Result) -> bool:
    """Return whether a baseline ran on another processor of one name and id: a machine took over from another."""
    if result.environment is None or baseline.environment is None:
        return False
    return is_namesake(baseline.environment.device, result.environment.device)


def _place(baseline: Result, result: Result) -> str:
    """Return where a baseline ran: the id of its device, or the processor where another one has that id here."""
    environment = baseline.environment
    if baseline.case.device != result.case.device or environment is None or result.environment is None:
        return baseline.case.device
    if same_device(environment.device, result.environment.device):
        return baseline.case.device
    return environment.device.title


def _without_device(results: Sequence[Result]) -> dict[Case, Result]:
    """Return the first measured result of each case, whatever the device."""
    measured = [result for result in results if result.measurement]
    return {replace(result.case, device=""): result for result in reversed(measured)}


def speedup(result: Result, baseline: Result, *, name: str | None = None) -> Speedup:
    """Return how many times as fast `result` is as `baseline`; both must be measured in the same run.

    Raises:
        ValueError: one of them has no measurement.
    """
    this, other = result.measurement, baseline.measurement
    if this is None or other is None:
        raise ValueError("a speedup needs two measured results")
    name = name or baseline.case.implementation
    return paired_speedup(this, other, name) if result.case.group == baseline.case.group else ratio(this, other, name)


def paired_speedup(this: Measurement, other: Measurement, name: str) -> Speedup:
    """Return the ratio of the medians of two measurements that share their rounds, or their processes.

    Its interval is that of the ratios round by round, or process by process, which is free of drift that hits both.
    """
    found, ratios = other.median_s / this.median_s, _ratios(this, other)
    is_pooled = len(this.processes) > 1
    interval = interval_of_few(ratios) if is_pooled else median_interval(ratios)
    if interval is None:
        return Speedup(name, found, None, paired=True)
    disagrees = not interval[0] / DISAGREES_ABOVE <= found <= interval[1] * DISAGREES_ABOVE
    interval = min(interval[0], found), max(interval[1], found)
    between = (this.between_ratios, other.between_ratios)
    if not is_pooled and None not in between and this is not other:
        interval = widened(interval, found, hypot(*(deviation or 0.0 for deviation in between)))
    covers, by_round = is_pooled or None not in between, median(ratios) if disagrees else None
    return Speedup(name, found, interval, paired=True, covers_processes=covers, by_round=by_round)


def _ratios(this: Measurement, other: Measurement) -> list[float]:
    """Return how many times as long the other one took, in each process, or else in each round."""
    pairs = (
        zip(other.process_medians_s, this.process_medians_s, strict=False)
        if len(this.processes) > 1
        else zip(other.samples_s, this.samples_s, strict=False)
    )
    return [slow / fast for slow, fast in pairs]


def ratio(this: Measurement, other: Measurement, name: str) -> Speedup:
    """Return the ratio of medians of two measurements that share no rounds, with a careful interval."""
    interval = None
    if this.ci95_s and other.ci95_s:
        interval = (other.ci95_s[0] / this.ci95_s[1], other.ci95_s[1] / this.ci95_s[0])
    covers = this.covers_processes and other.covers_processes
    return Speedup(name, other.median_s / this.median_s, interval, paired=False, covers_processes=covers)


def is_separable(result: Result, other: Result) -> bool:
    """Return whether the times of two measured results differ statistically, at 95 %.

    With too few samples for an interval: whether their samples do not overlap.
    """
    found = speedup(result, other)
    return not _overlap(result.measurement, other.measurement) if found.ci95 is None else found.distinct


def is_tie(result: Result, other: Result) -> bool:
    """Return whether two measured results cannot be separated, and their medians are within a factor of TIE_WITHIN."""
    this, that = result.measurement, other.measurement
    if this is None or that is None:
        return False
    near = max(this.median_s, that.median_s) <= TIE_WITHIN * min(this.median_s, that.median_s)
    return near and not is_separable(result, other)


def _overlap(this: Measurement | None, other: Measurement | None) -> bool:
    if this is None or other is None:
        return False
    return this.min_s <= max(other.samples_s) and other.min_s <= max(this.samples_s)


def _name(case: Case, other: Case, baseline: str) -> str:
    return baseline if case.device == other.device else f"{baseline} on {other.device}"
