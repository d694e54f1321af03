"""Findings of earlier processes on this machine: the medians of their cases, and their clock probes, in a small file.

Every run adds to it, which costs nothing; so the spread between processes is known better with each one.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Literal

from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.core.hardware import MachineKind
from gpuexplore.core.model import DEFAULT_BUDGET_S, Case, Device, Result
from gpuexplore.core.serialization import decode, encode
from gpuexplore.hardware import cache_directory
from gpuexplore.hardware.identity import device_key
from gpuexplore.operations import operation_named

# The prior spread between processes: by length of a call, threads and kind of machine.
#
# The figures of a shared CPU are measured, with `benchmarks/conclusions.py`, on two cores of an AMD EPYC (Zen 3, a
# virtual machine whose neighbours use the same cores): 60 cases of products, vectors, rows and training steps in
# fp32, in four processes. Of other CPUs a fraction of them is assumed, and of GPUs two figures, until there are runs
# of them.


Length = Literal["to 20 µs", "to 1 ms", "to 40 ms", "longer"]
Threads = Literal["one", "many"]

ENDS_S: Mapping[Length, float] = {"to 20 µs": 20e-6, "to 1 ms": 1e-3, "to 40 ms": 40e-3}


@dataclass(frozen=True, slots=True)
class Deviation:
    """The deviation of one process's median from that of many: half widths in natural logarithms, of 95 %.

    Attributes:
        times: of the median itself.
        ratios: of what it adds to its ratio to another implementation's, of the same process and group.
    """

    times: float
    ratios: float


SHARED: Mapping[tuple[Length, Threads], Deviation] = {
    ("to 20 µs", "one"): Deviation(0.08, 0.03),
    ("to 20 µs", "many"): Deviation(0.12, 0.03),
    ("to 1 ms", "one"): Deviation(0.08, 0.03),
    ("to 1 ms", "many"): Deviation(0.14, 0.03),
    ("to 40 ms", "one"): Deviation(0.08, 0.03),
    ("to 40 ms", "many"): Deviation(0.14, 0.03),
    ("longer", "one"): Deviation(0.08, 0.03),  # assumed as for calls up to 40 ms
    ("longer", "many"): Deviation(0.14, 0.03),
}
OF_SHARED: Mapping[MachineKind, float] = {
    "shared": 1.0,
    "virtual": 0.5,
    "bare metal": 0.25,
}  # assumed but for the first
OF_GPUS = Deviation(0.04, 0.02)  # assumed: clocks under load differ by a few percent


def length_of(median_s: float) -> Length:
    """Return the class of a call that takes `median_s`."""
    return next((name for name, end_s in ENDS_S.items() if median_s <= end_s), "longer")


def prior(kind: MachineKind | None, length: Length, threads: Threads) -> Deviation:
    """Return what is assumed of a class on a kind of CPU; None is a GPU."""
    if kind is None:
        return OF_GPUS
    shared = SHARED[length, threads]
    fraction = OF_SHARED[kind]
    return Deviation(shared.times * fraction, shared.ratios * fraction)


LOG_VERSION = 2  # raise it when placement or sampling changes: older files are then no longer used
MOST_CASES = 256
MOST_PROCESSES = 8  # of one case
MOST_PROBES = 256


@dataclass(frozen=True, slots=True)
class CaseHistory:
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
class SpreadLog:
    """The file of one machine; what was seen last comes last."""

    seen: tuple[CaseHistory, ...] = ()
    probes_flop_per_s: tuple[float, ...] = ()


def note_results(device: Device, process: str, results: Iterable[Result]) -> None:
    """Keep what `process` found on `device`; a file that cannot be written stays as it is: less is learned then."""
    found = [result for result in results if result.measurement]
    if found:
        with suppress(OSError, InvalidInput):
            _save(device, _with(load_log(device), process, found, device))


def _with(log: SpreadLog, process: str, results: Iterable[Result], device: Device) -> SpreadLog:
    seen = {each.key: each for each in log.seen}
    probes = list(log.probes_flop_per_s)
    for result in results:
        if result.measurement is None:
            continue
        key = case_key(result)
        before = seen.pop(key, CaseHistory(key, _hashed(_group(result)), threads_of(result.case, device)))
        others = {name: value for name, value in before.medians_s.items() if name != process}
        latest = list(others.items())[1 - MOST_PROCESSES :]
        seen[key] = replace(before, medians_s=dict(latest) | {process: result.measurement.median_s})
        probes += _probes(result)
    return SpreadLog(tuple(seen.values())[-MOST_CASES:], tuple(dict.fromkeys(probes))[-MOST_PROBES:])


def _probes(result: Result) -> list[float]:
    if result.environment is None:
        return []
    found = (result.environment.before.probe_flop_per_s, result.environment.after.probe_flop_per_s)
    return [rate for rate in found if rate]


def case_key(result: Result) -> str:
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


def threads_of(case: Case, device: Device) -> Threads:
    """Return whether `case` computes on one thread of `device` or on many."""
    threads = case.options.threads or device.cores
    alone = operation_named(case.operation).uses_one_thread(case.implementation, case.dtype, case.shape)
    return "one" if threads == 1 or alone else "many"


def load_log(device: Device) -> SpreadLog:
    """Return what is known of this machine; nothing where there is no file, or it cannot be read."""
    with suppress(OSError, InvalidInput):
        path = _path(device)
        return _parsed(path, path.stat().st_mtime_ns)
    return SpreadLog()


@lru_cache(maxsize=8)
def _parsed(path: Path, _: int) -> SpreadLog:
    """Return what the file holds, as it was changed last."""
    try:
        log = decode(SpreadLog, json.loads(path.read_text(encoding="utf-8")))
        values = [*log.probes_flop_per_s, *(value for each in log.seen for value in each.medians_s.values())]
        return log if all(isfinite(value) and value > 0 for value in values) else SpreadLog()
    except (ValueError, TypeError, KeyError, AttributeError, GpuExploreError):
        return SpreadLog()


def _save(device: Device, log: SpreadLog) -> None:
    path = _path(device)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(encode(log)), encoding="utf-8")
    draft.replace(path)


def _path(device: Device) -> Path:
    return cache_directory() / f"spread-{device_key(device)}-v{LOG_VERSION}.json"
