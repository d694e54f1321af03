"""A kernel ladder: our own kernels of one operation as shares of the vendor's library, and what their code allows.

The libraries are the implementations that have no rungs: what a rung is compared with is the
fastest of them in the same dtype, at the same shape, on the same device, in the same rounds.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gpuexplore.analysis.speedup import speedup
from gpuexplore.backends import load_backend
from gpuexplore.core.model import Result
from gpuexplore.operations import Implementation, Operation


@dataclass(frozen=True, slots=True)
class Rung:
    """One kernel of a ladder.

    Attributes:
        implementation: its row; `about` says what it changed.
        result: what became of it; None where it was not measured.
        baseline: name of the library it is compared with; None without a measurement of one.
        share: library's time over this kernel's, as a fraction; above 1 it is faster.
        ci95: interval of the share; None where too few samples pair.
    """

    implementation: Implementation
    result: Result | None = None
    baseline: str | None = None
    share: float | None = None
    ci95: tuple[float, float] | None = None


def kernels(operation: Operation, backend: str) -> tuple[Implementation, ...]:
    """Return our kernels of one backend from the naive one up, each once."""
    return tuple(row for row in operation.implementations if row.backend == backend and not row.best_rung)


def libraries(operation: Operation, backend: str) -> tuple[Implementation, ...]:
    """Return the implementations a ladder is compared with: those of other people that run where it runs."""
    kinds = set(load_backend(backend).DEVICE_KINDS)
    return tuple(
        implementation
        for implementation in operation.implementations
        if implementation.calls_library and not implementation.optional and kinds & set(implementation.runs_on_kinds)
    )


def ladder(operation: Operation, backend: str, results: Sequence[Result] = ()) -> tuple[Rung, ...]:
    """Return the rungs with their shares, of the first group of `results`; others are left out.

    The best rung under its usual name is one more, where it was measured.
    """
    found = {result.case.implementation: result for result in results if result.case.group == results[0].case.group}
    timed = (found.get(row.name) for row in libraries(operation, backend))
    measured = [result for result in timed if result and result.measurement and not result.measurement.is_single]
    best = min(measured, key=lambda result: result.measurement.median_s if result.measurement else 0.0, default=None)
    rungs = []
    for row in operation.implementations:
        result = found.get(row.name)
        if row.backend != backend or (row.best_rung and result is None):
            continue
        rung = Rung(row, result)
        if best and result and result.measurement and not result.measurement.is_single:
            compared = speedup(result, best)
            rung = Rung(row, result, best.case.implementation, compared.ratio, compared.ci95)
        rungs.append(rung)
    return tuple(rungs)


def published(operation: str, dtype: str) -> dict[str, dict[str, str]]:
    """Return published shares of similar kernels of other authors, by implementation: rows of published_ladders.csv."""
    rows = [row for row in all_published() if (row["operation"], row["dtype"]) == (operation, dtype)]
    return {row["implementation"]: row for row in rows}


@cache
def all_published() -> tuple[dict[str, str], ...]:
    """Return the rows of published_ladders.csv."""
    with (files("gpuexplore.analysis") / "data" / "published_ladders.csv").open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


# The rate that the machine code of each rung allows at most on a GPU, as recorded when it was compiled.
