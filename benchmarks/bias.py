"""Whether a sample is what a caller in a loop would see: rounds against the same calls back to back, in turns.

    python -m benchmarks.bias [--turns N] [--cache warm|cold] [--busy] [--worker] [--modes]

Thirteen cases: products of 64, 128 and 256 in NumPy, Numba and torch, additions of 10^5 and 10^6 numbers in torch and
NumPy, in fp32. In each turn and in random order every case is called in a loop, for 20 ms that do not count and
40 ms that do, and every mode takes a round of each implementation of a group, as a run does. The figure is the median
of a mode over the median of the loop.

Modes: `rounds` is what results are made of. With `--modes` others leave out a guard each: they show which are needed.
`again` is the loop a second time, what it differs from itself by: beside a busy loop a call of two threads has two
speeds. `free` is the loop where the scheduler places the threads. `plain` is a loop of NumPy on arrays that NumPy made,
as a user writes it, for NumPy's cases. With `--busy` another process computes meanwhile.
Pools spin as in a worker, and with `--worker` the priority is that of a worker as well, which root's may have. It
asserts nothing.
"""

import argparse
import gc
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any

from gpuexplore.core.model import CacheMode, Case, Device, Options
from gpuexplore.core.pools import raise_priority, shorten_spinning

CASES: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("matmul", 64): ("numpy", "numba-cpu", "torch"),
    ("matmul", 128): ("numpy", "numba-cpu", "torch"),
    ("matmul", 256): ("numpy", "numba-cpu", "torch"),
    ("vector_add", 100_000): ("torch", "numpy"),
    ("vector_add", 1_000_000): ("torch", "numpy"),
}
WARM_S, LOOP_S = 20e-3, 40e-3
LOOPS = ("loop", "again", "free", "plain")
SEED = 1
WITHIN = 0.05

Times = dict[tuple[str, Case], list[float]]


def main() -> None:
    """Measure and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--cache", choices=("warm", "cold"), default="warm")
    parser.add_argument("--busy", action="store_true", help="beside a process that computes all the time")
    parser.add_argument("--worker", action="store_true", help="at the priority of a worker that root started")
    parser.add_argument("--modes", action="store_true", help="also what each guard is good for")
    arguments = parser.parse_args()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    shorten_spinning()  # as in a worker: what follows loads NumPy
    from gpuexplore.measure import prepare_process

    prepare_process()
    with busy_loop() if arguments.busy else nullcontext():  # a child: before this process has another priority
        if arguments.worker:
            raise_priority()
        times = contest(arguments.turns, arguments.cache, with_modes=arguments.modes)
    _print(times)


def contest(turns: int, cache: CacheMode, *, with_modes: bool) -> Times:
    """Return the samples of every case, seconds, by mode; those of the loop under `loop`."""
    from gpuexplore.hardware import discover

    device = next(device for device in discover() if device.id == "cpu")
    made = [_group(what, implementations, device, cache=cache) for what, implementations in CASES.items()]
    groups = [(group, _plain(group)) for group in made]
    modes = {"rounds": _isolations()["rounds"]} if not with_modes else _isolations()
    times: Times = {}
    random = Random(SEED)
    gc.freeze()
    for _ in range(turns):
        for group, plain in groups:
            for name in random.sample([*LOOPS, *modes], len(modes) + len(LOOPS)):
                samplings = plain if name == "plain" else group
                for sampling in random.sample(samplings, len(samplings)):
                    times.setdefault((name, sampling.candidate.case), []).extend(
                        _loop(sampling, isolated=name != "free") if name in LOOPS else _round(sampling, modes[name])
                    )
    return times


def _group(what: tuple[str, int], implementations: Sequence[str], device: Device, *, cache: CacheMode) -> list[Any]:
    """Return the samplings of one group, warm, with their rounds planned."""
    from gpuexplore.measure.check.group import open_group
    from gpuexplore.measure.conditions.isolation import Isolation
    from gpuexplore.measure.sample.timing import WARM_UP_S, Sampling, plan_rounds, warm_up
    from gpuexplore.operations import operation_named

    name, size = what
    shape = operation_named(name).shape_of_size(size)
    cases = [Case(name, shape, "fp32", each, device.id, Options(cache=cache)) for each in implementations]
    group = open_group(cases, device, clock=perf_counter_ns, isolation=Isolation())
    found = []
    for case in cases:
        candidate = group.build(case, shape, group.checked_reference.inputs)
        call_s, _ = warm_up(candidate, group.clock, WARM_UP_S)
        found.append(Sampling(candidate, call_s, first_call_s=0.0))
    plan_rounds(found)
    return found


def _plain(group: Sequence[Any]) -> list[Any]:
    """Return the samplings of a group that are NumPy's, each with a call as a user writes it, on arrays of NumPy."""
    import numpy as np

    calls = {"matmul": np.matmul, "vector_add": np.add}
    found = []
    for sampling in group:
        case = sampling.candidate.case
        if case.implementation == "numpy":
            a, b = (np.array(array) for array in sampling.candidate.inputs)
            run = partial(calls[case.operation], a, b, np.empty_like(sampling.candidate.out))
            found.append(replace(sampling, candidate=replace(sampling.candidate, run=run)))
    return found


def _isolations() -> dict[str, Any]:
    """Return the isolation of each mode."""
    from gpuexplore.measure.conditions.isolation import Isolation

    rounds = Isolation()
    return {
        "rounds": rounds,
        "no waiting": replace(rounds, wait_for_idle_threads=lambda: None),
        "not isolated": replace(rounds, isolate_core=nullcontext),
        "neither": replace(rounds, wait_for_idle_threads=lambda: None, isolate_core=nullcontext),
    }


def _round(sampling: Any, isolation: Any) -> list[float]:
    from gpuexplore.measure.conditions.isolation import ProgressHooks

    before = len(sampling.samples_s)
    sampling.take_round(perf_counter_ns, isolation, ProgressHooks())
    found: list[float] = sampling.samples_s[before:]
    return found


def _loop(sampling: Any, *, isolated: bool) -> list[float]:
    """Return samples of calls that follow each other for 60 ms, without the first 20."""
    from gpuexplore.measure.conditions.isolation import isolate_core, wait_for_idle_threads

    candidate, samples = sampling.candidate, []
    wait_for_idle_threads()
    with isolate_core() if isolated else nullcontext():
        passed_s = 0.0
        while passed_s < WARM_S + LOOP_S or not samples:
            (sample_s,) = candidate.timer.sample(candidate.run, calls=sampling.calls, flush=candidate.flush)
            passed_s += sample_s * sampling.calls
            if passed_s >= WARM_S or candidate.flush is not None:
                samples.append(sample_s)
            if candidate.flush is not None:
                passed_s += WARM_S / 4  # flushes take longest
    return samples


@contextmanager
def busy_loop() -> Iterator[None]:
    """Inside, a process of the same priority computes all the time."""
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _spin() -> None:
    while True:
        pass


def _print(times: Times) -> None:
    modes = [name for name in dict.fromkeys(name for name, _ in times) if name != "loop"]
    print(f"{'case':34}{'loop, µs':>10}" + "".join(f"{name:>14}" for name in modes))
    outside: dict[str, int] = dict.fromkeys(modes, 0)
    for case in dict.fromkeys(case for _, case in times):
        loop_s = median(times["loop", case])
        ratios = {name: median(times[name, case]) / loop_s for name in modes if (name, case) in times}
        label = f"{case.operation} {max(case.shape):,} {case.implementation}"
        shown = (f"{ratios[name]:14.2f}" if name in ratios else f"{'':14}" for name in modes)
        print(f"{label:34}{loop_s * 1e6:10.1f}" + "".join(shown))
        for name, ratio in ratios.items():
            outside[name] += abs(ratio - 1) > WITHIN
    print(f"{'cases off by more than 5 %':44}" + "".join(f"{count:14}" for count in outside.values()))


if __name__ == "__main__":
    main()
