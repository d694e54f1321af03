"""What the benchmark of predictions judges: trials, the groups they fall into, and the errors of each way in a group.

The first way is ours; the error of another way is compared with ours on the rows that both predict.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from statistics import median
from types import MappingProxyType

import numpy as np

from gpuexplore.core.dtypes import format_named
from gpuexplore.core.model import Case, Device
from gpuexplore.hardware import row_of
from gpuexplore.operations import operation_named

OURS = "gpuexplore"
DURATIONS, LEAST_S = ("below 8 µs", "8 to 16 µs", "16 to 100 µs", "from 100 µs on"), (8e-6, 1.6e-5, 1e-4)
P90 = 0.9
FEW = 3


@dataclass(frozen=True, slots=True)
class Guess:
    """What a way predicts, seconds; the ends of its interval are None for a way that states none."""

    time_s: float
    low_s: float | None = None
    high_s: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement, and what each way predicts for it.

    Attributes:
        origin: who measured it.
        device: key of the table, or a CPU's name.
        architecture: of the device; None for a CPU.
        timing: how the time was taken; None where it is unknown.
        decade: of its FLOPs, or of its bytes where it has no products, e.g. ``1e9 FLOP``.
        took_s: what was measured, seconds.
        guesses: by way; a way that does not predict such a case is missing.
    """

    origin: str
    device: str
    architecture: str | None
    operation: str
    dtype: str
    shape: str
    implementation: str
    timing: str | None
    decade: str
    took_s: float
    guesses: Mapping[str, Guess]

    def error(self, way: str) -> float:
        """Return the absolute error of a way, as a share of what was measured."""
        return abs(self.guesses[way].time_s / self.took_s - 1)

    def held(self, way: str) -> bool | None:
        """Return whether what was measured lies in a way's interval; None without one."""
        guess = self.guesses[way]
        if guess.low_s is None or guess.high_s is None:
            return None
        return guess.low_s <= self.took_s <= guess.high_s


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of a way in a group.

    Attributes:
        count: rows that it predicts.
        median: of the absolute errors, as a share of what was measured.
        p90: nine of ten are at most so far off.
        held: share of its intervals that hold; None for a way without.
        times_ours: its median over ours on the same rows; None where we predict none of them.
    """

    count: int
    median: float
    p90: float
    held: float | None
    times_ours: float | None


def summary_of(trials: Sequence[Trial]) -> dict[str, float | None]:
    """Return how far our predictions are off in trials that each have one, by the names that JSON has.

    ``rows``, ``median``, ``p90`` and ``holds`` are as in `Errors`; ``bias`` is the median of predicted over measured
    times.
    """
    errors = errors_of(trials, OURS)
    if errors is None:
        raise ValueError("no trial has a prediction")
    bias = median(trial.guesses[OURS].time_s / trial.took_s for trial in trials)
    return {"rows": errors.count, "median": errors.median, "p90": errors.p90, "holds": errors.held, "bias": bias}


GROUPINGS: Mapping[str, Callable[[Trial], str | None]] = MappingProxyType(
    {
        "origin": lambda trial: trial.origin,
        "operation": lambda trial: trial.operation,
        "device": lambda trial: trial.device,
        "dtype": lambda trial: trial.dtype,
        "decade": lambda trial: trial.decade,
        "duration": lambda trial: DURATIONS[bisect(LEAST_S, trial.took_s)],
        "timing": lambda trial: trial.timing or "not stated",
        "architecture": lambda trial: trial.architecture,
    }
)


def trial_of(case: Case, device: Device, took_s: float, *, origin: str, timing: str | None = None) -> Trial:
    """Return the trial of a case, without guesses."""
    row = row_of(device)
    return Trial(
        origin=origin,
        device=row.key if row else device.name,
        architecture=row.architecture if row else None,
        operation=case.operation,
        dtype=case.dtype,
        shape=str(case.shape),
        implementation=case.implementation,
        timing=timing,
        decade=decade(case),
        took_s=took_s,
        guesses={},
    )


def decade(case: Case) -> str:
    """Return the power of ten of a case's FLOPs, or of its bytes where it has no products."""
    operation = operation_named(case.operation)
    if operation.is_matrix_product:
        return f"1e{floor(log10(operation.flop_count(case.shape))):02} FLOP"
    return f"1e{floor(log10(operation.byte_count(case.shape, format_named(case.dtype)))):02} B"


def grouped(trials: Iterable[Trial], by: str) -> dict[str, list[Trial]]:
    """Return the trials of each group of a grouping, in the order of their names."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if (name := GROUPINGS[by](trial)) is not None:
            groups.setdefault(name, []).append(trial)
    return dict(sorted(groups.items()))


def errors_of(trials: Sequence[Trial], way: str) -> Errors | None:
    """Return how wrong a way is; None where it predicts none of the trials."""
    mine = [trial for trial in trials if way in trial.guesses]
    if not mine:
        return None
    errors = [trial.error(way) for trial in mine]
    held = [said for trial in mine if (said := trial.held(way)) is not None]
    return Errors(
        count=len(mine),
        median=median(errors),
        p90=float(np.quantile(errors, P90)),
        held=sum(held) / len(held) if held else None,
        times_ours=_times_ours(mine, way),
    )


def _times_ours(trials: Sequence[Trial], way: str) -> float | None:
    both = [trial for trial in trials if OURS in trial.guesses]
    ours = median(trial.error(OURS) for trial in both) if both else 0.0
    return median(trial.error(way) for trial in both) / ours if ours else None


def ways_of(trials: Iterable[Trial]) -> list[str]:
    """Return every way that predicts one of the trials, ours first."""
    found = dict.fromkeys(way for trial in trials for way in trial.guesses)
    return sorted(found, key=lambda way: way != OURS)


def table(trials: Sequence[Trial], by: str) -> str:
    """Return a grouping as text: a line for each group, each way's errors beside the others'.

    Groups of fewer than FEW trials are put together.
    """
    ways, groups = ways_of(trials), grouped(trials, by)
    small = [trial for some in groups.values() if len(some) < FEW for trial in some]
    groups = {name: some for name, some in groups.items() if len(some) >= FEW}
    groups |= {**({f"of fewer than {FEW} rows": small} if small else {}), "all": list(trials)}
    cells = [[f"by {by}", *ways]]
    cells += [[name, *(_words(errors_of(some, way)) for way in ways)] for name, some in groups.items()]
    widths = [max(len(row[column]) for row in cells) for column in range(len(ways) + 1)]
    lines = [" | ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)


def _words(errors: Errors | None) -> str:
    """Return count, median, 90th percentile, share of intervals that hold, and times ours, all but the first in %."""
    if errors is None:
        return "-"
    held = f"{errors.held:5.0%}" if errors.held is not None else "    -"
    ratio = f"{errors.times_ours:6.2f}x" if errors.times_ours is not None else "      -"
    return f"{errors.count:4} {errors.median:7.1%} {errors.p90:6.0%} {held} {ratio}"
