"""How often `compare` calls something different that is not, and finds a change that is there.

    python -m benchmarks.compare made                 samples drawn with a known spread and a known change
    python -m benchmarks.compare live [--runs N]      the same request in N runs of this machine, each against each

Aims: made samples without a change are called different in under 5 %; a change of 5 % is found in nine of ten where the
spread between processes allows it; on this machine at most one case in twenty is called different. It asserts nothing.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import exp, log

from gpuexplore.analysis.compare import INTERVAL_WIDENING, Side, compare_runs
from gpuexplore.core.model import Case, Measurement, Result, Shape, Status
from gpuexplore.jobs.run_sources import side_of
from gpuexplore.store import open_store

SEED = 26
TRIALS = 2000
SPREADS = (0.002, 0.005, 0.012, 0.03, 0.08)  # standard deviations from process to process, in natural logarithms
SCATTERS = (0.005, 0.02, 0.1)  # and of the samples of a process
COUNTS = (10, 40)
CHANGE = 1.05
HALF_WIDTH = 1.96
UNSET = ("OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE")  # another BLAS; modules compiled at each start
REQUESTS = (
    ("matmul", "--size", "50,100,200,400", "--dtype", "fp32,fp64", "--impl", "numpy,numba-cpu,torch"),
    ("vector_add", "--size", "3000,100000,3000000", "--dtype", "fp32", "--impl", "numpy,numba-cpu,torch"),
    ("softmax", "--size", "100,700", "--dtype", "fp32", "--impl", "numpy,torch"),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """By how much times vary, from process to process and from sample to sample, and how many samples are taken."""

    spread: float
    scatter: float
    count: int


def main() -> None:
    """Print the shares of what was called different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("made", "live"))
    parser.add_argument("--runs", type=int, default=8)
    given = parser.parse_args()
    if given.what == "made":
        _made(random.Random(SEED))
    else:
        _live(given.runs)


def _made(order: random.Random) -> None:
    print(f"{'spread':>8}{'scatter':>9}{'samples':>9}{'false alarms':>14}{'5 % found':>11}{'allowed':>9}")
    for machine in (Machine(*each) for each in product(SPREADS, SCATTERS, COUNTS)):
        alarms, found = (_share_told(order, machine, change) for change in (1.0, CHANGE))
        allowed = "yes" if _allowed(machine) else ""
        about = f"{machine.spread:8.1%}{machine.scatter:9.1%}{machine.count:9}"
        print(f"{about}{alarms:14.1%}{found:11.1%}{allowed:>9}")


def _share_told(order: random.Random, machine: Machine, change: float) -> float:
    told = 0
    for _ in range(TRIALS):
        sides = [Side("", (_result(order, machine, by),)) for by in (1.0, change)]
        (case,) = compare_runs(*sides).cases
        told += case.change == "slower" if change > 1 else case.change in ("slower", "faster")
    return told / TRIALS


def _allowed(machine: Machine) -> bool:
    """Return whether a change of 5 % lies so far from 1 that nine of ten intervals of 95 % can exclude it."""
    of_median = 1.2533 * machine.scatter / machine.count**0.5
    of_ratio = (2 * (machine.spread**2 + of_median**2)) ** 0.5
    return (1.96 * INTERVAL_WIDENING + 1.2816) * of_ratio <= log(CHANGE)


def _result(order: random.Random, machine: Machine, factor: float) -> Result:
    process_s = 1e-3 * factor * exp(order.gauss(0, machine.spread))
    samples = tuple(process_s * exp(order.gauss(0, machine.scatter)) for _ in range(machine.count))
    case = Case("matmul", Shape.of(m=64, k=64, n=64), "fp32", "numpy", "cpu")
    measurement = Measurement(samples, samples[0], between_processes=HALF_WIDTH * machine.spread)
    return Result(case, Status.OK, measurement=measurement)


def _live(count: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {key: value for key, value in os.environ.items() if key not in UNSET} | {"GPUEXPLORE_HOME": home}
        os.environ["GPUEXPLORE_HOME"] = home
        for _ in range(count):
            for request in REQUESTS:
                command = [sys.executable, "-m", "gpuexplore", "run", *request]
                subprocess.run(command, check=False, env=environment, capture_output=True, timeout=300)
        with open_store() as store:
            runs = [store.load(run.id) for run in store.history(limit=200)]
    total: Counter[str] = Counter()
    for request in REQUESTS:
        sides = [side_of(run) for run in runs if run.experiment.operation == request[0]]
        total += _told(request[0], sides)
    _print("all", total)


def _told(operation: str, sides: Sequence[Side]) -> "Counter[str]":
    found = Counter(
        case.change or "inconclusive"
        for before, after in combinations(sides, 2)
        for case in compare_runs(before, after).cases
        if case.ratio
    )
    _print(operation, found)
    return found


def _print(name: str, found: "Counter[str]") -> None:
    count = found.total()
    different = found["faster"] + found["slower"]
    print(f"{name:12}{count:6} comparisons: {different / count:.1%} different; {dict(found)}" if count else name)


if __name__ == "__main__":
    main()
