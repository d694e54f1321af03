"""Speedups with their intervals: how many times as fast a result is as its baseline.

A speedup is the ratio of two medians. Implementations of one group are sampled by rounds, so sample i of both comes
from round i, and the interval of the ratios round by round is free of drift that hits both. Across dtypes or devices
nothing is paired. What disturbed one of both widens the interval (`gpuexplore.analysis.verdict`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuexplore.analysis.model import Speedup
from gpuexplore.analysis.verdict import compare, ratio_of, ratios_by_round
from gpuexplore.core import Case, Measurement, Result, interval_of_few, median_interval, paired_median
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.hardware.identity import is_namesake, same_device
from gpuexplore.operations import operation_named

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
            there = "" if nearest.case.device == case.device else f" on {nearest.case.device}"
            found[case] = speedup(result, nearest, name=f"{baseline}{there}")
            continue
        other = nearest or apart.get(replace(wanted, device=""))
        if other is not None:
            found[case] = speedup(result, other, name=f"{baseline} on {_device_name(other, result)}", same_run=False)
    return found


def _on_a_namesake(result: Result, baseline: Result) -> bool:
    """Return whether a baseline ran on another processor of one name and id: a machine took over from another."""
    if result.environment is None or baseline.environment is None:
        return False
    return is_namesake(baseline.environment.device, result.environment.device)


def _device_name(baseline: Result, result: Result) -> str:
    """Return the device of a baseline: its id, or the processor's name where the id belongs to another device here."""
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


def speedup(result: Result, baseline: Result, *, name: str | None = None, same_run: bool = True) -> Speedup:
    """Return how many times as fast `result` is as `baseline`; both must be measured.

    Args:
        result: what is compared.
        baseline: what it is compared with.
        name: what the baseline is called; None is its implementation.
        same_run: whether both were measured in one run: those of one group then share their rounds, or processes.

    Raises:
        ValueError: one of them has no measurement.
    """
    this = result.measurement
    other = baseline.measurement
    estimate = ratio_of(baseline, result, same_run=same_run)
    if this is None or other is None or estimate is None:
        raise ValueError("a speedup needs two measured results")
    paired = same_run and result.case.group == baseline.case.group
    return Speedup(
        name or baseline.case.implementation,
        estimate,
        paired=paired,
        covers_processes=_cover_processes(this, other, paired=paired),
        by_round=_by_round(this, other) if paired else None,
    )


def _cover_processes(this: Measurement, other: Measurement, *, paired: bool) -> bool:
    """Return whether the interval of their ratio also covers what changes from one process to the next."""
    if not paired:
        return this.covers_processes and other.covers_processes
    known = this.between_ratios is not None and other.between_ratios is not None
    return known or min(len(this.processes), len(other.processes)) > 1


def _by_round(this: Measurement, other: Measurement) -> float | None:
    """Return the median of the ratios round by round, where it disagrees with that of the medians; None where not."""
    ratios = ratios_by_round(other, this)
    return paired_median(
        ratios,
        other.median_s / this.median_s,
        interval_of_few(ratios) if len(this.processes) > 1 else median_interval(ratios),
    )


def is_separable(result: Result, other: Result) -> bool:
    """Return whether two measured results differ significantly."""
    return compare(ratio_of(result, other), 1.0).relation is not None
