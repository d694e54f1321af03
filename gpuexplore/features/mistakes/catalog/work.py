"""Mistakes in what is timed: more than the work that is meant, less of it, or other work."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuexplore.backends import Call
from gpuexplore.core.model import Options, Shape
from gpuexplore.features.mistakes.catalog import (
    Demonstrate,
    Detection,
    Factor,
    MistakeObservation,
    Stage,
    no_sign,
)
from gpuexplore.features.mistakes.catalog.subject import (
    Procedure,
    Subject,
    flag_of,
    from_pairs,
    interleave,
    open_subject,
    round_median,
)
from gpuexplore.measure.sample.contrast import call_overhead_s

# Bringing the data to the device and back is timed with the computation.


def _demonstrate_transfer_counted(stage: Stage) -> MistakeObservation:
    """Time a vector addition with and without copies of its inputs and its result."""
    subject = open_subject(stage, "vector_add", Shape.of(n={"cpu": 1_000_000, "cuda": 16_000_000}[stage.device.kind]))
    out = subject.candidate.out
    bring = partial(_bring, subject)
    if stage.device.kind == "cuda":
        return _observe_transfer_counted(subject, stage, bring, out.cpu)
    seen = _observe_transfer_counted(subject, stage, bring, out.copy)
    note = "A CPU needs no transfer: memory copies of the inputs and of the result stand in for it."
    return replace(seen, how="emulated", note=note)


def _observe_transfer_counted(
    subject: Subject, stage: Stage, bring: Callable[[], object], take_back: Callable[[], object]
) -> MistakeObservation:
    """Compare a call between `bring` and `take_back` with a call alone."""

    def call() -> object:
        bring()
        subject.candidate.run()
        return take_back()

    moved = replace(subject, candidate=replace(subject.candidate, run=call))
    pairs = interleave(lambda: moved.candidate.first_call_s(stage.clock), round_median(subject, stage), stage)
    return from_pairs("transfer-counted", pairs, subject, no_sign("transfer-counted"))


def _bring(subject: Subject) -> None:
    candidate = subject.candidate
    for array in subject.group.timed_reference.inputs:
        candidate.backend.to_device(array, candidate.dtype, candidate.case.device)


# The result is allocated in every call, and the allocation timed with it.


def _demonstrate_result_allocated(stage: Stage) -> MistakeObservation:
    """Time NumPy's addition into a new array and into one that is there."""
    # 48 MB: above 32 MiB the C library asks the system for fresh pages each time.
    subject = open_subject(stage, "vector_add", Shape.of(n=12_000_000))
    a, b = subject.group.timed_reference.inputs
    return _observe_result_allocated(subject, stage, lambda: a + b)


def _observe_result_allocated(subject: Subject, stage: Stage, allocating: Callable[[], object]) -> MistakeObservation:
    """Compare a call that allocates its result with one that writes into an output."""
    other = replace(subject, candidate=replace(subject.candidate, run=allocating))
    pairs = interleave(round_median(other, stage), round_median(subject, stage), stage)
    return from_pairs("result-allocated", pairs, subject, no_sign("result-allocated"))


# The time of a large size is extrapolated from a tiny one.


def _demonstrate_tiny_size(stage: Stage) -> MistakeObservation:
    """Extrapolate a product by its FLOPs from one of 8 × 8, and measure it."""
    size = {"cpu": 512, "cuda": 4096}[stage.device.kind]
    tiny = open_subject(stage, "matmul", Shape.of(m=8, k=8, n=8))
    overhead_s = call_overhead_s(tiny.case, tiny.group, stage.progress)
    return _observe_tiny_size(tiny, open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage, overhead_s)


def _observe_tiny_size(tiny: Subject, large: Subject, stage: Stage, overhead_s: float | None) -> MistakeObservation:
    """Compare the extrapolated time of `large` with its own; `overhead_s` is that of a call on one element."""
    times = large.flop_count / tiny.flop_count
    time_tiny = round_median(tiny, stage)
    pairs = interleave(lambda: time_tiny() * times, round_median(large, stage), stage)
    detection = flag_of(tiny, tuple(time_s / times for time_s in pairs.wrong), "launch_bound", overhead_s=overhead_s)
    note = f"The time of {tiny.what} times {times:,.0f}, the ratio of their FLOPs."
    return replace(from_pairs("tiny-size", pairs, large, detection), note=note)


# A rate from the caches is reported as the memory's.


def _demonstrate_warm_cache(stage: Stage) -> MistakeObservation:
    """Time a vector addition with its operands in the caches and in memory."""
    shape = Shape.of(n={"cpu": 100_000, "cuda": 1_000_000}[stage.device.kind])
    warm, cold = (open_subject(stage, "vector_add", shape, options=Options(cache=cache)) for cache in ("warm", "cold"))
    return _observe_warm_cache(warm, cold, stage)


def _observe_warm_cache(warm: Subject, cold: Subject, stage: Stage) -> MistakeObservation:
    """Compare the rates of memory that a warm and a cold call seem to reach."""
    pairs = interleave(round_median(warm, stage), round_median(cold, stage), stage)
    return from_pairs("warm-cache", pairs.as_rates(cold.byte_count), cold, flag_of(warm, pairs.wrong, "warm"))


# The CPU that is beaten uses one of its cores.


def _demonstrate_one_thread_baseline(stage: Stage) -> MistakeObservation:
    """Time NumPy's product on one core and on all of them."""
    shape = Shape.of(m=512, k=512, n=512)
    one_core, all_cores = (
        open_subject(stage, "matmul", shape, options=Options(threads=threads)) for threads in (1, stage.device.cores)
    )
    return _observe_one_thread_baseline(one_core, all_cores, stage)


def _observe_one_thread_baseline(one_core: Subject, all_cores: Subject, stage: Stage) -> MistakeObservation:
    """Compare the times of a product on one core and on all of them."""
    pairs = interleave(_pinned(one_core, stage), _pinned(all_cores, stage), stage)
    return from_pairs(
        "one-thread-baseline", pairs, all_cores, _unless_others_had_the_cores(pairs.factor, _idle_cores(one_core))
    )


def _unless_others_had_the_cores(factor: Factor, found: Detection) -> Detection:
    """Return that nothing was shown where one thread was the faster way: other work had the other cores."""
    if factor.ci95 is None or factor.ci95[1] >= 1:
        return found
    return Detection(
        None, f"one thread was faster than all threads: other work used the cores, measure again ({found.evidence})"
    )


def _pinned(subject: Subject, stage: Stage) -> Procedure:
    """Return the right way to time `subject`, on its own number of threads."""
    take = round_median(subject, stage)

    def take_on_its_threads() -> float:
        subject.candidate.backend.set_threads(subject.environment.threads or 1)
        return take()

    return take_on_its_threads


def _idle_cores(subject: Subject) -> Detection:
    """Return whether cores had no work, from the same two figures as the diagnosis."""
    threads = subject.environment.threads
    cores = subject.group.device.cores
    if threads is None or cores is None:
        return Detection(None, "the number of threads or of cores is unknown")
    return Detection(threads < cores, f"threads: {threads}, physical cores: {cores}")


# The compiler removes a loop whose result is unused.


def _demonstrate_unused_result(stage: Stage) -> MistakeObservation:
    """Time a sum that Numba compiles with and without somewhere to put it."""
    length = 10_000_000
    subject = open_subject(stage, "reduce_sum", Shape.of(m=1, n=length))
    (x,) = subject.group.timed_reference.inputs
    unused, used = _compiled(x[0], np.empty(1, x.dtype))
    seen = _observe_unused_result(subject, stage, unused, used)
    return replace(seen, what=f"a sum of {length:,} numbers in fp32, a loop compiled by Numba")


def _observe_unused_result(subject: Subject, stage: Stage, unused: Call, used: Call) -> MistakeObservation:
    """Compare the rates of two calls, the first of which does nothing with its sum; `subject` counts the FLOPs."""
    pairs = interleave(
        round_median(_calling(subject, unused, stage), stage),
        round_median(_calling(subject, used, stage), stage),
        stage,
    )
    detection = flag_of(subject, pairs.wrong, "over_peak")
    return from_pairs("unused-result", pairs.as_rates(subject.flop_count), subject, detection)


def _calling(subject: Subject, run: Call, stage: Stage) -> Subject:
    candidate = replace(subject.candidate, run=run)
    candidate.first_call_s(stage.clock)  # compiles
    return replace(subject, candidate=candidate, call_s=candidate.first_call_s(stage.clock))


def _compiled(x: Any, out: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    from numba import njit

    def unused(x: Any) -> None:
        total = x.dtype.type(0)
        for i in range(x.size):
            total += x[i]

    def used(x: Any, out: Any) -> None:
        total = x.dtype.type(0)
        for i in range(x.size):
            total += x[i]
        out[0] = total

    without = njit(unused)
    within = njit(used)
    return lambda: without(x), lambda: within(x, out)


DEMONSTRATIONS: Mapping[str, Demonstrate] = {
    "transfer-counted": _demonstrate_transfer_counted,
    "result-allocated": _demonstrate_result_allocated,
    "tiny-size": _demonstrate_tiny_size,
    "warm-cache": _demonstrate_warm_cache,
    "one-thread-baseline": _demonstrate_one_thread_baseline,
    "unused-result": _demonstrate_unused_result,
}
