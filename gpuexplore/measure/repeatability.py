"""How far the median of one process lies from that of many: a table, measured once for a machine, by size.

The interval of one process's samples knows nothing of it: where a library's own buffers and threads lie changes from
process to process, and stays as it is within one. `gpuexplore repeatability` measures the table.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path
from statistics import stdev

from gpuexplore.devices import cache_directory
from gpuexplore.devices.identity import device_key
from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import GpuExploreError
from gpuexplore.model import Case, Device, Result
from gpuexplore.operations import operation_named
from gpuexplore.serialization import decode, encode
from gpuexplore.statistics import student_t

REPEATABILITY_VERSION = 1  # raise it when placement or sampling changes: older tables are then no longer used
FEWEST_PROCESSES = 5
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Spread:
    """How far medians of single processes lie from the grand one.

    Attributes:
        library: that computes, by the name of its backend.
        size_class: the smallest cache that holds the arrays, ``L1`` to ``L3``, or ``memory``.
        deviation: half width, in natural logarithms, of the interval that holds 95 % of them.
    """

    library: str
    size_class: str
    deviation: float


@dataclass(frozen=True, slots=True)
class Repeatability:
    """The table of one machine.

    Attributes:
        processes: of each case it was measured with.
    """

    measured_utc: str
    processes: int
    spreads: tuple[Spread, ...]

    def deviation(self, library: str, size_class: str) -> float | None:
        """Return the deviation of `library` in a class, or else the largest of any library there; None without one."""
        same = [spread for spread in self.spreads if spread.size_class == size_class]
        own = [spread for spread in same if spread.library == library]
        return max((spread.deviation for spread in own or same), default=None)


def between_processes(case: Case, device: Device) -> float | None:
    """Return `Measurement.between_processes` of `case`, from the table of this machine; None without one.

    A table holds for the threads it was measured with: one per core.
    """
    if case.options.threads not in (None, device.cores):
        return None
    table = load_repeatability(device)
    return None if table is None else table.deviation(_library(case), size_class(case, device))


def spreads_of(results: Iterable[Result], device: Device) -> tuple[Spread, ...]:
    """Return what results that were pooled from fresh processes tell, the largest of each library and class."""
    largest: dict[tuple[str, str], float] = {}
    for result in results:
        medians_s = result.measurement.process_medians_s if result.measurement else ()
        if len(medians_s) >= FEWEST_PROCESSES:
            place = _library(result.case), size_class(result.case, device)
            largest[place] = max(largest.get(place, 0.0), deviation_of(medians_s))
    return tuple(Spread(*place, deviation) for place, deviation in largest.items())


def deviation_of(medians_s: Sequence[float]) -> float:
    """Return the half width, in logarithms, that holds the next process's median at 95 %: a prediction interval."""
    logs = list(map(log, medians_s))
    return student_t(len(logs) - 1) * stdev(logs) * sqrt(1 + 1 / len(logs))


def size_class(case: Case, device: Device) -> str:
    """Return the smallest cache of `device` that holds the arrays of `case`, or ``memory``."""
    byte_count = operation_named(case.operation).byte_count(case.shape, dtype_named(case.dtype))
    levels = {f"L{cache.level}": cache.size_bytes for cache in device.caches}
    if not levels and device.cache_bytes:
        levels = {"L2": device.cache_bytes}
    fitting = [name for name, size_bytes in sorted(levels.items()) if size_bytes and byte_count <= size_bytes]
    return fitting[0] if fitting else MEMORY


def load_repeatability(device: Device) -> Repeatability | None:
    """Return the table of this machine; None where none was measured, or it cannot be read."""
    try:
        return decode(Repeatability, json.loads(_path(device).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, GpuExploreError):
        return None


def save_repeatability(device: Device, table: Repeatability) -> None:
    """Save the table of `device` in one step, so that no other process reads half a file."""
    path = _path(device)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(encode(table)), encoding="utf-8")
    draft.replace(path)


def _path(device: Device) -> Path:
    return cache_directory() / f"repeatability-{device_key(device)}-v{REPEATABILITY_VERSION}.json"


def _library(case: Case) -> str:
    return operation_named(case.operation).implementation_named(case.implementation).backend
