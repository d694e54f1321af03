"""The speed of one core right now: the loop of the fp32 ceiling for a few milliseconds.

Run before and after samples it shows a clock that changed, and neighbours that no account of this machine knows, as
the other thread of a core that two virtual machines share.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import CFUNCTYPE, addressof, c_float, c_int64, c_void_p, create_string_buffer
from functools import cache, partial
from random import gauss
from threading import Barrier
from time import perf_counter
from typing import Any

from gpuexplore.hardware.cpu_ceiling.loops import loop_code, loops_for

DTYPE = "fp32"
TRIAL_S = 1e-4  # shorter than a scheduler's time slice: the best of several trials excludes other work on this core
FEWEST_TRIALS = 20
MOST_TRIALS = 60
LONGEST_WAIT_S = 0.1  # limit for a core that another process keeps busy
SCRATCH_BYTES = 256  # two vector registers and some more


def prepare_clock_probe() -> None:
    """Compile the loop, unless this process has it: best before anything else is built."""
    _calibrated()


def clock_probe() -> float | None:
    """Return the FLOP/s of the calling thread's core now; None where LLVM is missing or does not know the host."""
    trial = _calibrated()
    if trial is None:
        return None
    return _best(trial)


def core_rates(cores: Sequence[int]) -> tuple[float, ...]:
    """Return the FLOP/s of each of `cores` now, all at once; none without LLVM, or where threads cannot be pinned."""
    trial = _calibrated()
    if trial is None or not cores:
        return ()
    # OSError: a core was taken away; RuntimeError, of which a broken barrier is one: no thread could be started in time
    with suppress(OSError, RuntimeError, TimeoutError):
        together = Barrier(len(cores), timeout=LONGEST_WAIT_S)  # so that each has a thread of its own
        first, *rest = cores
        others = [_threads().submit(_rate_on, core, trial, together) for core in rest]
        return (_rate_on(first, trial, together), *(other.result(LONGEST_WAIT_S) for other in others))
    return ()


def _rate_on(core: int, trial: Callable[[], float], together: Barrier) -> float:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        together.wait()
        return _best(trial)
    finally:
        os.sched_setaffinity(0, before)


def _best(trial: Callable[[], float]) -> float:
    """Return the rate of the fastest trial, once it has not risen for a while.

    A core that slept raises its clock in steps of 0.3 ms, from 63 to 102 GFLOP/s on a Zen 3.
    """
    best = 0.0
    steady = 0
    for number in range(MOST_TRIALS):
        rate = trial()
        steady = 0 if rate > 1.01 * best else steady + 1
        best = max(best, rate)
        if number >= FEWEST_TRIALS and steady >= 6:
            break
    return best


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="clock-probe")


if hasattr(os, "register_at_fork"):  # a copy of this process has none of its threads
    os.register_at_fork(after_in_child=_threads.cache_clear)


@cache
def _calibrated() -> Callable[[], float] | None:
    """Return a function that runs the loop for `TRIAL_S` and returns its FLOP/s."""
    # RuntimeError: LLVM's word for what it cannot compile; OSError: it cannot be loaded, as where memory is short
    with suppress(ImportError, RuntimeError, OSError):
        return _compiled()
    return None


def _compiled() -> Callable[[], float]:
    """Compile nothing but this loop, for its first call comes before samples."""
    import llvmlite.binding as llvm

    loop = loops_for(dict(llvm.get_host_cpu_features()))[DTYPE]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple().create_target_machine(
        llvm.get_host_cpu_name(), features, opt=1, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(loop_code(DTYPE, loop)), target)
    engine.finalize_object()
    run = CFUNCTYPE(None, c_int64, c_void_p, c_void_p)(engine.get_function_address(DTYPE))
    scratch_floats = SCRATCH_BYTES // 4
    factors = (c_float * scratch_floats)(*(gauss(0.0, 1.0) for _ in range(scratch_floats)))

    def rate(iterations: int, _: Any = engine) -> float:  # whose machine code stays in memory as long
        sums = create_string_buffer(SCRATCH_BYTES)  # of the thread's own
        start = perf_counter()
        run(iterations, addressof(sums), addressof(factors))
        return iterations * loop.flop_count / (perf_counter() - start)

    iterations = round(max(rate(2_000) for _ in range(5)) * TRIAL_S / loop.flop_count)
    return partial(rate, iterations)
