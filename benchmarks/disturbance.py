"""Disturbance of a measurement by visitors: the same run without visitors and with a classroom, interleaved.

    python -m benchmarks.disturbance [--pairs N]

Measures as an ordinary user: the right to raise priorities is given up first. Each round measures three times, in an
order that changes: alone, alone once more, and while 50 visitors look at the start page, 30 watch the run, 30 wait for
a run of their own, 20 are on Kernels and 5 on the what-if. The ratio of the two alone is the noise that the machine has
by itself. The visitors are `benchmarks.visitor`, on the same cores, with the lowest priority. It asserts nothing.
"""

import argparse
import asyncio
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from uuid import uuid4

from benchmarks.visitor import Visitor
from gpuexplore.core.model import Case, Experiment, Options, Result, Run, Shape
from gpuexplore.core.statistics import median_interval
from gpuexplore.store import Store, open_store
from scripts.app_server import database_of, served

CROWD: Mapping[str, int] = {"": 50, "kernels": 20, "what-if": 5}
WATCHING, WAITING = 30, 30
PAIRS = 12
ARRIVE_S, SETTLE_S, LOOK_S = 8.0, 3.0, 0.1
OFF = 0.05  # a result that is further from the undisturbed one must say so
TELLING = {"noisy", "contended"}
PR_CAPBSET_DROP, CAP_SYS_NICE = 24, 23  # https://man7.org/linux/man-pages/man7/capabilities.7.html
EXPERIMENT = Experiment(
    "matmul",
    tuple(Shape.of(m=size, k=size, n=size) for size in (128, 512, 1024)),
    ("fp32",),
    ("numpy", "torch", "numba-cpu"),
)
HOLDING = Experiment("matmul", (Shape.of(m=2000, k=2000, n=2000),), ("fp32",), ("numpy",), options=Options(budget_s=60))
Times = dict[Case, Result]


async def alone(_: str, store: Store) -> Times:
    """Measure without visitors."""
    return await _measured(store, store.submit(EXPERIMENT, _somebody()))


async def in_company(address: str, store: Store) -> Times:
    """Measure with a classroom connected, which has arrived while another run was measured."""
    holder = _somebody()
    holding = store.submit(HOLDING, holder)
    run_id = store.submit(EXPERIMENT, _somebody())
    waiting = {owner: store.submit(EXPERIMENT, owner) for owner in (_somebody() for _ in range(WAITING))}
    visitors = [Visitor(address, page) for page, count in CROWD.items() for _ in range(count)]
    visitors += [Visitor(address, "benchmark", f"run={run_id}") for _ in range(WATCHING)]
    visitors += [Visitor(address, "benchmark", f"run={waits}", owner) for owner, waits in waiting.items()]
    async with _connected(visitors):
        await asyncio.sleep(SETTLE_S)
        store.request_cancel(holding, holder)
        found = await _measured(store, run_id)
    for owner, waits in waiting.items():
        store.request_cancel(waits, owner)
    return found


def _somebody() -> str:
    """Return an owner who has used no device yet: their runs have their turns in the order in which they came."""
    return f"visitor.{uuid4().hex}"


@asynccontextmanager
async def _connected(visitors: Sequence[Visitor]) -> AsyncIterator[None]:
    async def arrive(place: int, visitor: Visitor) -> None:
        await asyncio.sleep(ARRIVE_S * place / len(visitors))
        await visitor.open()

    try:
        await asyncio.gather(*(arrive(place, visitor) for place, visitor in enumerate(visitors)))
        yield
    finally:
        await asyncio.gather(*(visitor.close() for visitor in visitors))


async def _measured(store: Store, run_id: str) -> Times:
    while store.load_summary(run_id).active:
        await asyncio.sleep(LOOK_S)
    run: Run = store.load(run_id)
    return {result.case: result for result in run.results if result.measurement}


def _median_s(result: Result) -> float:
    assert result.measurement
    return result.measurement.median_s


def _ratios(pairs: Sequence[tuple[Times, Times]]) -> list[float]:
    return [
        _median_s(later[case]) / _median_s(earlier[case])
        for earlier, later in pairs
        for case in earlier.keys() & later.keys()
    ]


def _say(what: str, ratios: Sequence[float]) -> float:
    low, high = median_interval(ratios) or (float("nan"), float("nan"))
    p90 = quantiles([abs(ratio - 1) for ratio in ratios], n=10)[-1]
    worst = max(ratios)
    print(
        f"{what:26s} median ratio {median(ratios):.3f} ({low:.3f} to {high:.3f}), "
        f"off by p90 {p90:.1%}, worst x{worst:.2f}"
    )
    return p90


def _report(rounds: Sequence[tuple[Times, Times, Times]]) -> None:
    noise = _say("alone against alone", _ratios([(first, second) for first, second, _ in rounds]))
    crowd = _say("in company against alone", _ratios([(first, company) for first, _, company in rounds]))
    print(f"p90 in company over p90 alone: {crowd / noise:.1f} (aim: at most 2; median within 2 % of 1)")
    undisturbed = {
        case: median(
            _median_s(times[case]) for first, second, _ in rounds for times in (first, second) if case in times
        )
        for case in EXPERIMENT.cases()
    }
    _say_off("in company", undisturbed, [company for _, _, company in rounds])
    _say_off("alone", undisturbed, [times for first, second, _ in rounds for times in (first, second)])


def _say_off(where: str, undisturbed: Mapping[Case, float], found: Sequence[Times]) -> None:
    """Say how many results are far from the undisturbed ones, and which of them do not say so."""
    results = [(case, result) for times in found for case, result in times.items()]
    off = [(case, result) for case, result in results if abs(_median_s(result) / undisturbed[case] - 1) > OFF]
    silent = [(case, result) for case, result in off if not TELLING & {flag.name for flag in result.flags}]
    print(
        f"results {where} off by over {OFF:.0%}: {len(off)} of {len(results)}, "
        f"of which {len(silent)} carry no flag (aim: 0)"
    )
    for case, result in silent:
        print(f"  {case.implementation} at {case.shape}: x{_median_s(result) / undisturbed[case]:.3f}")


async def _rounds(address: str, store: Store, count: int) -> list[tuple[Times, Times, Times]]:
    await alone(address, store)  # what is loaded and compiled once is not counted
    found = []
    for number in range(count):
        acts = [alone, alone, in_company] if number % 2 else [in_company, alone, alone]
        times = [await act(address, store) for act in acts]
        first, second, company = times if number % 2 else (times[1], times[2], times[0])
        found.append((first, second, company))
        print(f"round {number + 1} of {count}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure in turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="rounds; each has a pair of either kind")
    count = parser.parse_args().pairs
    ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0)
    os.environ.pop("OPENBLAS_CORETYPE", None)
    os.environ["GPUEXPLORE_LIMIT_DEVICE_SECONDS_PER_HOUR"] = "1000000"
    with tempfile.TemporaryDirectory(prefix="gpuexplore-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        with served(home, settings={"GPUEXPLORE_LOCKS": str(home / "locks")}) as address:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            time.sleep(1)
            with open_store(database_of(home)) as store:
                _report(asyncio.run(_rounds(address, store, count)))


if __name__ == "__main__":
    main()
