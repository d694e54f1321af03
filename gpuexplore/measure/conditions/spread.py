"""The distance of one process's median from that of many, and of its ratio to another: known from the first day.

What is assumed of a kind of machine counts as much as eight medians; those that earlier processes left in the log of
this machine join it, first for all cases whose calls are as long and use as many threads, then for the case itself. A
table of `gpuexplore repeatability` goes before both.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log, sqrt
from statistics import fmean

from gpuexplore.core.hardware import MachineKind
from gpuexplore.core.model import Case, Device, Measurement, Result
from gpuexplore.core.statistics import median
from gpuexplore.hardware.cpu import machine_kind
from gpuexplore.measure.conditions.repeatability import spread_between_processes
from gpuexplore.measure.conditions.spread_log import (
    CaseHistory,
    Deviation,
    Length,
    SpreadLog,
    Threads,
    case_key,
    length_of,
    load_log,
    prior,
    threads_of,
)

NORMAL_95 = 1.96
PRIOR_WEIGHT = 8.0  # medians
CLASS_WEIGHT = 4.0  # of a class, against those of one case
MOST_OF_ONE_PROCESS = 4.0  # medians of a class: what slows a process slows many cases of it alike
MAX_DEVIATION = 1.25  # expected half widths: the deviation of a median that a neighbour disturbed more is clipped to it

Class = tuple[Length, Threads]


@dataclass(frozen=True, slots=True)
class _Scatter:
    """Deviations of medians from their means, in logarithms.

    Attributes:
        away: the deviations.
        freedom: degrees of freedom.
        share: the weight of each.
    """

    away: tuple[float, ...] = ()
    freedom: float = 0.0
    share: float = 1.0

    def joined(self, expected: float, weight: float) -> float:
        """Return the half width that these and an expected one give, which counts as so many medians."""
        squares = sum(min(abs(each), MAX_DEVIATION * expected) ** 2 for each in self.away)
        variance = weight * (expected / NORMAL_95) ** 2 + self.share * squares
        return NORMAL_95 * sqrt(variance / (weight + self.share * self.freedom))


Scatters = tuple[_Scatter, _Scatter]  # of medians, and of the residuals without what slows all of a group
NO_OBSERVATIONS: Scatters = (_Scatter(), _Scatter())


def _joined(seen: Scatters, expected: Deviation, weight: float) -> Deviation:
    """Return the expected deviation, which counts as so many medians, joined with what was seen."""
    times, ratios = seen
    return Deviation(times.joined(expected.times, weight), ratios.joined(expected.ratios, weight))


def with_spread(result: Result) -> Result:
    """Return a measured result with the spread between processes, and on a CPU with the kind of its machine.

    What has no measurement, or does not name its device, comes back as it is.
    """
    if result.measurement is None or result.environment is None:
        return result
    device = result.environment.device
    expected = _of_calls(result.measurement.median_s, threads_of(result.case, device), device)
    seen = _learned(load_log(device))[1].get(case_key(result), NO_OBSERVATIONS)
    found = _by_table(result.case, device, _joined(seen, expected, CLASS_WEIGHT))
    return replace(
        result,
        measurement=_with(result.measurement, found),
        environment=replace(result.environment, device=replace(device, machine_kind=_kind(device))),
    )


def with_spread_of_calls(measurement: Measurement, device: Device) -> Measurement:
    """Return a measurement that is no case of an operation, with the spread between processes for calls as long."""
    return _with(measurement, _of_calls(measurement.median_s, "many", device))


def _with(measurement: Measurement, found: Deviation) -> Measurement:
    return replace(measurement, between_processes=found.times, between_ratios=found.ratios)


def _of_calls(median_s: float, threads: Threads, device: Device) -> Deviation:
    kind_of_call = length_of(median_s), threads
    of_class, _ = _learned(load_log(device))
    return _joined(of_class.get(kind_of_call, NO_OBSERVATIONS), prior(_kind(device), *kind_of_call), PRIOR_WEIGHT)


def _by_table(case: Case, device: Device, found: Deviation) -> Deviation:
    measured = spread_between_processes(case, device)
    if measured is None:
        return found
    return Deviation(measured.deviation, found.ratios if measured.of_ratios is None else measured.of_ratios)


def _kind(device: Device) -> MachineKind | None:
    """Return the kind of a CPU's machine, as far as its probes show; None of other devices."""
    return _kind_by_probes(load_log(device)) if device.kind == "cpu" else None


@lru_cache(maxsize=8)
def _kind_by_probes(known: SpreadLog) -> MachineKind:
    return machine_kind(known.probes_flop_per_s)


@lru_cache(maxsize=8)
def _learned(known: SpreadLog) -> tuple[Mapping[Class, Scatters], Mapping[str, Scatters]]:
    """Return what was seen of each class, and of each case by its key."""
    ratios = {key: scatter for group in _groups(known.seen) for key, scatter in _of_ratios(group).items()}
    of_cases = {each.key: (_of_times(each), ratios.get(each.key, _Scatter())) for each in known.seen}
    by_class: dict[Class, list[CaseHistory]] = defaultdict(list)
    for each in known.seen:
        by_class[length_of(median(list(each.medians_s.values()))), each.threads].append(each)
    return {kind_of_call: _of_class(seen, of_cases) for kind_of_call, seen in by_class.items()}, of_cases


def _of_class(seen: Sequence[CaseHistory], of_cases: Mapping[str, Scatters]) -> Scatters:
    processes = len({name for each in seen for name in each.medians_s})
    most = MOST_OF_ONE_PROCESS * (processes - 1)
    times, ratios = zip(*(of_cases[each.key] for each in seen), strict=True)
    return _total(times, most), _total(ratios, most)


def _total(scatters: Sequence[_Scatter], most: float) -> _Scatter:
    """Return all of them as one, which counts as no more than `most` medians."""
    freedom = sum(each.freedom for each in scatters)
    away = tuple(value for each in scatters for value in each.away)
    return _Scatter(away, freedom, min(1.0, most / freedom) if freedom else 1.0)


def _of_times(seen: CaseHistory) -> _Scatter:
    logs = list(map(log, seen.medians_s.values()))
    center = median(logs)
    return _Scatter(tuple(value - center for value in logs), len(logs) - 1)


def _groups(seen: Iterable[CaseHistory]) -> Iterable[Sequence[CaseHistory]]:
    found: dict[str, list[CaseHistory]] = defaultdict(list)
    for each in seen:
        if len(each.medians_s) > 1:
            found[each.group].append(each)
    return [group for group in found.values() if len(group) > 1]


def _of_ratios(group: Sequence[CaseHistory]) -> Mapping[str, _Scatter]:
    """Return the scatter of the members of a group, by key, with the mean of each process removed."""
    shared = [name for name in group[0].medians_s if all(name in each.medians_s for each in group)]
    if len(shared) < 2:
        return {}
    logs = [[log(each.medians_s[name]) for name in shared] for each in group]
    of_process = [fmean(column) for column in zip(*logs, strict=True)]
    grand = fmean(of_process)
    freedom = (len(shared) - 1) * (1 - 1 / len(group))
    left = [[value - mean - fmean(row) + grand for value, mean in zip(row, of_process, strict=True)] for row in logs]
    return {each.key: _Scatter(tuple(row), freedom) for each, row in zip(group, left, strict=True)}
