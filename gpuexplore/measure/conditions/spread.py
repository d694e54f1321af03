"""The deviation of one process's median, or ratio, from that of many: a prior, updated by observed results.

What is assumed of a kind of machine counts as much as eight medians; those that earlier processes left in the log of
this machine, a small file that every run adds to, join it: first for all cases whose calls are as long and use as many
threads, then for the case itself. A table of `gpuexplore repeatability` goes before both.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite, log, sqrt
from pathlib import Path
from statistics import fmean
from typing import Literal

from gpuexplore.core import (
    DEFAULT_BUDGET_S,
    Case,
    Device,
    GpuExploreError,
    InvalidInput,
    MachineKind,
    Measurement,
    Result,
    decode,
    median,
    write_json,
)
from gpuexplore.hardware import cache_directory, device_key, machine_kind
from gpuexplore.measure.conditions.repeatability import spread_between_processes
from gpuexplore.operations import operation_named

# The prior spread between processes: by length of a call, threads and kind of machine.
#
# The figures of a shared CPU are measured, with `benchmarks/conclusions.py`, on two cores of an AMD EPYC (Zen 3, a
# virtual machine whose neighbours use the same cores): 60 cases of products, vectors, rows and training steps in
# fp32, in four processes. Of other CPUs a fraction of them is assumed, and of GPUs two figures, until there are runs
# of them.

Length = Literal["to 20 µs", "to 1 ms", "to 40 ms", "longer"]
Threads = Literal["one", "many"]


@dataclass(frozen=True, slots=True)
class _Deviation:
    """The deviation of one process's median from that of many: half widths in natural logarithms, of 95 %.

    Attributes:
        times: of the median itself.
        ratios: of what it adds to its ratio to another implementation's, of the same process and group.
    """

    times: float
    ratios: float


_SHARED: Mapping[tuple[Length, Threads], _Deviation] = {
    ("to 20 µs", "one"): _Deviation(0.08, 0.03),
    ("to 20 µs", "many"): _Deviation(0.12, 0.03),
    ("to 1 ms", "one"): _Deviation(0.08, 0.03),
    ("to 1 ms", "many"): _Deviation(0.14, 0.03),
    ("to 40 ms", "one"): _Deviation(0.08, 0.03),
    ("to 40 ms", "many"): _Deviation(0.14, 0.03),
    ("longer", "one"): _Deviation(0.08, 0.03),  # assumed as for calls up to 40 ms
    ("longer", "many"): _Deviation(0.14, 0.03),
}


def length_of(median_s: float) -> Length:
    """Return the class of a call that takes `median_s`."""
    ends_s: Mapping[Length, float] = {"to 20 µs": 20e-6, "to 1 ms": 1e-3, "to 40 ms": 40e-3}
    return next((name for name, end_s in ends_s.items() if median_s <= end_s), "longer")


def prior(kind: MachineKind | None, length: Length, threads: Threads) -> _Deviation:
    """Return the prior of a class on a kind of CPU; None is a GPU."""
    if kind is None:
        return _Deviation(0.04, 0.02)  # assumed: clocks under load differ by a few percent
    fraction = {"shared": 1.0, "virtual": 0.5, "bare metal": 0.25}[kind]  # assumed but for the first
    shared = _SHARED[length, threads]
    return _Deviation(shared.times * fraction, shared.ratios * fraction)


MOST_CASES = 256
MOST_PROCESSES = 8  # of one case


@dataclass(frozen=True, slots=True)
class _CaseHistory:
    """The measurements of one case by several processes.

    Attributes:
        key: of the case and the versions of its libraries.
        group: of the cases that were sampled with it.
        medians_s: by process, the latest last.
    """

    key: str
    group: str
    threads: Threads
    medians_s: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class _SpreadLog:
    """The file of one machine; what was seen last comes last."""

    seen: tuple[_CaseHistory, ...] = ()
    probes_flop_per_s: tuple[float, ...] = ()


def note_results(device: Device, process: str, results: Iterable[Result]) -> None:
    """Save the results of `process` on `device`; an unwritable file is left unchanged, and less is learned."""
    found = [result for result in results if result.measurement]
    if found:
        with suppress(OSError, InvalidInput):
            write_json(_path(device), _joined_log(_load_log(device), process, found, device))


def _joined_log(log: _SpreadLog, process: str, results: Iterable[Result], device: Device) -> _SpreadLog:
    seen = {each.key: each for each in log.seen}
    probes = list(log.probes_flop_per_s)
    for result in results:
        if result.measurement is None:
            continue
        key = _case_key(result)
        before = seen.pop(key, _CaseHistory(key, _hashed(_group(result)), _threads_of(result.case, device)))
        others = {name: value for name, value in before.medians_s.items() if name != process}
        latest = list(others.items())[1 - MOST_PROCESSES :]
        seen[key] = replace(before, medians_s=dict(latest) | {process: result.measurement.median_s})
        if result.environment is not None:
            states = (result.environment.before, result.environment.after)
            probes += [state.probe_flop_per_s for state in states if state.probe_flop_per_s]
    return _SpreadLog(tuple(seen.values())[-MOST_CASES:], tuple(dict.fromkeys(probes))[-256:])


def _case_key(result: Result) -> str:
    """Return a short text that is the same for results of one case with the same libraries."""
    return _hashed((result.case.implementation, _group(result)))


def _group(result: Result) -> object:
    operation, shape, dtype, device, options = result.case.group
    versions = (
        (result.environment.app_version, sorted(result.environment.libraries.items())) if result.environment else ()
    )
    return operation, str(shape), dtype, device, replace(options, budget_s=DEFAULT_BUDGET_S, repeat=1), versions


def _hashed(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def _threads_of(case: Case, device: Device) -> Threads:
    """Return whether `case` computes on one thread of `device` or on many."""
    threads = case.options.threads or device.cores
    alone = operation_named(case.operation).uses_one_thread(case.implementation, case.dtype, case.shape)
    return "one" if threads == 1 or alone else "many"


def _load_log(device: Device) -> _SpreadLog:
    """Return the log of this machine; empty where there is no file, or it cannot be read."""
    with suppress(OSError, InvalidInput):
        path = _path(device)
        return _parsed(path, path.stat().st_mtime_ns)
    return _SpreadLog()


@lru_cache(maxsize=8)
def _parsed(path: Path, _: int) -> _SpreadLog:
    """Return the contents of the file, as of its last change."""
    try:
        log = decode(_SpreadLog, json.loads(path.read_text(encoding="utf-8")))
        values = [*log.probes_flop_per_s, *(value for each in log.seen for value in each.medians_s.values())]
        return log if all(isfinite(value) and value > 0 for value in values) else _SpreadLog()
    except (ValueError, TypeError, KeyError, AttributeError, GpuExploreError):
        return _SpreadLog()


def _path(device: Device) -> Path:
    version = 2  # raise it when placement or sampling changes: older files are then no longer used
    return cache_directory() / f"spread-{device_key(device)}-v{version}.json"


# What is expected, joined with what was seen.

NORMAL_95 = 1.96
_Class = tuple[Length, Threads]


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
        most = 1.25 * expected  # the deviation of a median that a neighbour disturbed more is clipped to it
        squares = sum(min(abs(each), most) ** 2 for each in self.away)
        variance = weight * (expected / NORMAL_95) ** 2 + self.share * squares
        return NORMAL_95 * sqrt(variance / (weight + self.share * self.freedom))


_Scatters = tuple[_Scatter, _Scatter]  # of medians, and of the residuals without what slows all of a group
_NO_OBSERVATIONS: _Scatters = (_Scatter(), _Scatter())


def _joined(seen: _Scatters, expected: _Deviation, weight: float) -> _Deviation:
    """Return the expected deviation, which counts as so many medians, joined with what was seen."""
    times, ratios = seen
    return _Deviation(times.joined(expected.times, weight), ratios.joined(expected.ratios, weight))


def with_spread(result: Result) -> Result:
    """Return a measured result with the spread between processes, and on a CPU with the kind of its machine.

    What has no measurement, or does not name its device, comes back as it is.
    """
    if result.measurement is None or result.environment is None:
        return result
    device = result.environment.device
    expected = _of_calls(result.measurement.median_s, _threads_of(result.case, device), device)
    seen = _learned(_load_log(device))[1].get(_case_key(result), _NO_OBSERVATIONS)
    found = _by_table(result.case, device, _joined(seen, expected, weight=4.0))
    return replace(
        result,
        measurement=_with(result.measurement, found),
        environment=replace(result.environment, device=replace(device, machine_kind=_kind(device))),
    )


def with_spread_of_calls(measurement: Measurement, device: Device) -> Measurement:
    """Return a measurement that is no case of an operation, with the spread between processes for calls as long."""
    return _with(measurement, _of_calls(measurement.median_s, "many", device))


def _with(measurement: Measurement, found: _Deviation) -> Measurement:
    return replace(measurement, between_processes=found.times, between_ratios=found.ratios)


def _of_calls(median_s: float, threads: Threads, device: Device) -> _Deviation:
    kind_of_call = length_of(median_s), threads
    of_class, _ = _learned(_load_log(device))
    return _joined(of_class.get(kind_of_call, _NO_OBSERVATIONS), prior(_kind(device), *kind_of_call), weight=8.0)


def _by_table(case: Case, device: Device, found: _Deviation) -> _Deviation:
    measured = spread_between_processes(case, device)
    if measured is None:
        return found
    return _Deviation(measured.deviation, found.ratios if measured.of_ratios is None else measured.of_ratios)


def _kind(device: Device) -> MachineKind | None:
    """Return the kind of a CPU's machine, as far as its probes show; None of other devices."""
    return _kind_by_probes(_load_log(device)) if device.kind == "cpu" else None


@lru_cache(maxsize=8)
def _kind_by_probes(known: _SpreadLog) -> MachineKind:
    return machine_kind(known.probes_flop_per_s)


@lru_cache(maxsize=8)
def _learned(known: _SpreadLog) -> tuple[Mapping[_Class, _Scatters], Mapping[str, _Scatters]]:
    """Return the observations of each class, and of each case by its key."""
    ratios = {key: scatter for group in _groups(known.seen) for key, scatter in _of_ratios(group).items()}
    of_cases = {each.key: (_of_times(each), ratios.get(each.key, _Scatter())) for each in known.seen}
    by_class: dict[_Class, list[_CaseHistory]] = defaultdict(list)
    for each in known.seen:
        by_class[length_of(median(list(each.medians_s.values()))), each.threads].append(each)
    return {kind_of_call: _of_class(seen, of_cases) for kind_of_call, seen in by_class.items()}, of_cases


def _of_class(seen: Sequence[_CaseHistory], of_cases: Mapping[str, _Scatters]) -> _Scatters:
    processes = len({name for each in seen for name in each.medians_s})
    most = 4.0 * (processes - 1)  # what slows a process slows many cases of it alike
    times, ratios = zip(*(of_cases[each.key] for each in seen), strict=True)
    return _total(times, most), _total(ratios, most)


def _total(scatters: Sequence[_Scatter], most: float) -> _Scatter:
    """Return all of them as one, which counts as no more than `most` medians."""
    freedom = sum(each.freedom for each in scatters)
    away = tuple(value for each in scatters for value in each.away)
    return _Scatter(away, freedom, min(1.0, most / freedom) if freedom else 1.0)


def _of_times(seen: _CaseHistory) -> _Scatter:
    logs = list(map(log, seen.medians_s.values()))
    center = median(logs)
    return _Scatter(tuple(value - center for value in logs), len(logs) - 1)


def _groups(seen: Iterable[_CaseHistory]) -> Iterable[Sequence[_CaseHistory]]:
    found: dict[str, list[_CaseHistory]] = defaultdict(list)
    for each in seen:
        if len(each.medians_s) > 1:
            found[each.group].append(each)
    return [group for group in found.values() if len(group) > 1]


def _of_ratios(group: Sequence[_CaseHistory]) -> Mapping[str, _Scatter]:
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
