"""The deviation of one process's median from that of many: a table by size, measured once per machine.

The interval of one process's samples does not contain it: the addresses of a library's own buffers and the cores of its
threads change from process to process, and stay the same within one. `gpuexplore repeatability` measures the table.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Literal

from gpuexplore.core import Case, Device, GpuExploreError, Measurement, Result, decode, median, student_t, write_json
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.hardware import cache_directory, device_key
from gpuexplore.operations import operation_named

FEWEST_PROCESSES = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """The deviation of medians of single processes from the grand one.

    Attributes:
        library: that computes, by the name of its backend.
        threads: ``one`` or ``many``: the speed at which several exchange data changes with their cores.
        size_class: the smallest cache that holds the arrays, ``L1`` to ``L3``, or ``memory``.
        deviation: half width, in natural logarithms, of the interval that holds 95 % of them; half of its square is the
            mean of all classes with as many threads.
        of_ratios: in the same way, of what a median adds to its ratio to another implementation's, of the same process
            and group; None where nothing was compared.
    """

    library: str
    threads: Literal["one", "many"]
    size_class: str
    deviation: float
    of_ratios: float | None = None


@dataclass(frozen=True, slots=True)
class Repeatability:
    """The table of one machine.

    Attributes:
        processes: of each case it was measured with.
    """

    measured_utc: str
    processes: int
    spreads: tuple[Spread, ...]

    def nearest(self, wanted: Spread) -> Spread | None:
        """Return the row of the library, threads and class of `wanted`.

        Without one it is the largest of its class, of any library with as many threads if there is one; None where the
        class has no row.
        """
        same = [spread for spread in self.spreads if spread.size_class == wanted.size_class]
        alike = [spread for spread in same if spread.threads == wanted.threads]
        own = [spread for spread in alike if spread.library == wanted.library]
        return max(own or alike or same, key=lambda spread: spread.deviation, default=None)


def spread_between_processes(case: Case, device: Device) -> Spread | None:
    """Return the spread between processes for `case`, from the table of this machine; None without one.

    A table holds for the threads it was measured with: one per core.
    """
    if case.options.threads not in (None, device.cores):
        return None
    table = _load_repeatability(device)
    return None if table is None else table.nearest(_row(case, device, 0.0))


def spreads_of(runs: Sequence[Mapping[Case, Result]], device: Device) -> tuple[Spread, ...]:
    """Return the spreads of results of fresh processes, the largest of each library, number of threads and class.

    Twelve processes see few of the speeds a machine has, which last for minutes and affect every class: so a class
    borrows half of its variance from all that compute on as many threads.
    """
    largest: dict[tuple[str, str, str], Spread] = {}
    for case in dict.fromkeys(case for run in runs for case in run):
        medians_s = [measurement.median_s for run in runs if (measurement := _measurement(run, case))]
        if len(medians_s) < FEWEST_PROCESSES:
            continue
        row = _row(case, device, _deviation_of(medians_s), _of_ratios(runs, case))
        key = row.library, row.threads, row.size_class
        seen = largest.get(key, row)
        of_ratios = max((each.of_ratios for each in (seen, row) if each.of_ratios is not None), default=None)
        largest[key] = replace(row, deviation=max(seen.deviation, row.deviation), of_ratios=of_ratios)
    return tuple(_shrunk_to_class(spread, largest.values()) for spread in largest.values())


def _shrunk_to_class(spread: Spread, spreads: Iterable[Spread]) -> Spread:
    alike = [each for each in spreads if each.threads == spread.threads]
    of_ratios = [each.of_ratios for each in alike if each.of_ratios is not None]
    return replace(
        spread,
        deviation=_mean_with_class(spread.deviation, [each.deviation for each in alike]),
        of_ratios=None if spread.of_ratios is None else _mean_with_class(spread.of_ratios, of_ratios),
    )


def _mean_with_class(own: float, every: Sequence[float]) -> float:
    return sqrt((own**2 + mean(each**2 for each in every)) / 2)


def _of_ratios(runs: Sequence[Mapping[Case, Result]], case: Case) -> float | None:
    """Return the share of `case` in the largest spread of its ratios to others of its group; None without enough."""
    found = []
    for other in dict.fromkeys(other for run in runs for other in run if other.group == case.group and other != case):
        both = [(_measurement(run, case), _measurement(run, other)) for run in runs]
        ratios = [this.median_s / that.median_s for this, that in both if this and that]
        if len(ratios) >= FEWEST_PROCESSES:
            found.append(_deviation_of(ratios) / sqrt(2))
    return max(found, default=None)


def _measurement(run: Mapping[Case, Result], case: Case) -> Measurement | None:
    result = run.get(case)
    return result.measurement if result else None


def _row(case: Case, device: Device, deviation: float, of_ratios: float | None = None) -> Spread:
    operation = operation_named(case.operation)
    library = operation.implementation_named(case.implementation).backend
    alone = device.cores == 1 or operation.uses_one_thread(case.implementation, case.dtype, case.shape)
    return Spread(library, "one" if alone else "many", size_class(case, device), deviation, of_ratios)


def _deviation_of(values: Sequence[float]) -> float:
    """Return the half width, in logarithms, that holds the next process's at 95 %.

    That is a prediction interval; and no less than the furthest is from the median, for some machines have two speeds.
    """
    logs = list(map(log, values))
    furthest = max(abs(value - median(logs)) for value in logs)
    return max(student_t(len(logs) - 1) * stdev(logs) * sqrt(1 + 1 / len(logs)), furthest)


def size_class(case: Case, device: Device) -> str:
    """Return the smallest cache of `device` that holds the arrays of `case`, or ``memory``."""
    byte_count = operation_named(case.operation).byte_count(case.shape, dtype_named(case.dtype))
    levels = {f"L{cache.level}": cache.size_bytes for cache in device.caches}
    if not levels and device.cache_bytes:
        levels = {"L2": device.cache_bytes}
    fitting = [name for name, size_bytes in sorted(levels.items()) if size_bytes and byte_count <= size_bytes]
    return fitting[0] if fitting else "memory"


def _load_repeatability(device: Device) -> Repeatability | None:
    """Return the table of this machine; None where none was measured, or it cannot be read."""
    try:
        return decode(Repeatability, json.loads(_path(device).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, GpuExploreError):
        return None


def save_repeatability(device: Device, table: Repeatability) -> None:
    """Save the table of `device`."""
    write_json(_path(device), table)


def _path(device: Device) -> Path:
    version = 4  # raise it when placement or sampling changes: older tables are then no longer used
    return cache_directory() / f"repeatability-{device_key(device)}-v{version}.json"
