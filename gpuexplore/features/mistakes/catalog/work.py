"""Mistakes in what is timed: more than the work that is meant, less of it, or other work."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpuexplore.backends.timer import Call
from gpuexplore.core.model import Options, Shape
from gpuexplore.features.mistakes.catalog.contract import Detection, Factor, Mistake, MistakeObservation, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import (
    Procedure,
    Subject,
    flag_of,
    from_pairs,
    interleave,
    no_sign,
    open_subject,
    round_median,
)
from gpuexplore.measure.sample.contrast import call_overhead_s

# Bringing the data to the device and back is timed with the computation.
BACK: Mapping[str, Callable[[Any], object]] = {"cpu": lambda out: out.copy(), "cuda": lambda out: out.cpu()}
WITHIN_MEMORY = "A CPU has no transfer: copies within its memory, of the inputs and of the result, stand in for it."


def _demonstrate_transfer_counted(stage: Stage) -> MistakeObservation:
    """Time a vector addition with and without copies of its inputs and its result."""
    subject = open_subject(stage, "vector_add", Shape.of(n={"cpu": 1_000_000, "cuda": 16_000_000}[stage.device.kind]))
    seen = observe_transfer_counted(
        subject, stage, lambda: _bring(subject), lambda: BACK[stage.device.kind](subject.candidate.out)
    )
    return replace(seen, how="emulated", note=WITHIN_MEMORY) if stage.device.kind == "cpu" else seen


def observe_transfer_counted(
    subject: Subject, stage: Stage, bring: Callable[[], object], take_back: Callable[[], object]
) -> MistakeObservation:
    """Compare a call between `bring` and `take_back` with a call alone."""

    def call() -> object:
        bring()
        subject.candidate.run()
        return take_back()

    moved = replace(subject, candidate=replace(subject.candidate, run=call))
    pairs = interleave(lambda: moved.candidate.first_call_s(stage.clock), round_median(subject, stage), stage)
    return from_pairs(TRANSFER_COUNTED, pairs, subject, no_sign(TRANSFER_COUNTED))


def _bring(subject: Subject) -> None:
    candidate = subject.candidate
    for array in subject.group.timed_reference.inputs:
        candidate.backend.to_device(array, candidate.dtype, candidate.case.device)


TRANSFER_COUNTED = Mistake(
    name="transfer-counted",
    title="Does the time of a kernel hold the way to the device?",
    rows=("A2", "B7", "C2"),
    wrong="Copies to the device and back are timed with the kernel, and told as the kernel's time.",
    right="Bring the data there before the clock starts; time the transfer as a quantity of its own.",
    wrong_code=("start = perf_counter()\nc = (a.to(device) + b.to(device)).cpu()\nelapsed = perf_counter() - start"),
    right_code=("a, b = a.to(device), b.to(device)\nstart.record()\ntorch.add(a, b, out=c)\nend.record()"),
    why=(
        "A kernel reads its operands from memory at hundreds of gigabytes per second, the bus brings tens. "
        "What is timed is then the bus, and the same kernel in the middle of a computation takes a fraction of it."
    ),
    quantity="time",
    why_none=(
        "A time does not tell what it was spent on, and a slow kernel looks the same. The diagnosis transfer_dominates "
        "says what a transfer would add to a result on a GPU that is compared with a CPU"
    ),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_transfer_counted,
)


# The result is allocated in every call, and the allocation timed with it.


def _demonstrate_result_allocated(stage: Stage) -> MistakeObservation:
    """Time NumPy's addition into a new array and into one that is there."""
    # 48 MB: above 32 MiB the C library asks the system for fresh pages each time.
    subject = open_subject(stage, "vector_add", Shape.of(n=12_000_000))
    a, b = subject.group.timed_reference.inputs
    return observe_result_allocated(subject, stage, lambda: a + b)


def observe_result_allocated(subject: Subject, stage: Stage, allocating: Callable[[], object]) -> MistakeObservation:
    """Compare a call that allocates its result with one that writes into an output."""
    other = replace(subject, candidate=replace(subject.candidate, run=allocating))
    pairs = interleave(round_median(other, stage), round_median(subject, stage), stage)
    return from_pairs(RESULT_ALLOCATED, pairs, subject, no_sign(RESULT_ALLOCATED))


RESULT_ALLOCATED = Mistake(
    name="result-allocated",
    title="Who pays for the memory of the result?",
    rows=("B3", "E4"),
    wrong="One side allocates its result in every call, the other writes into an array that is there.",
    right="Every implementation writes into an output that was allocated before the clock started.",
    wrong_code=("def call():\n    return a + b     # a new array"),
    right_code=("out = np.empty_like(a)\ndef call():\n    np.add(a, b, out=out)"),
    why=(
        "Fresh memory comes from the operating system page by page, each zeroed when it is first touched. "
        "For large results that costs more than the additions themselves."
    ),
    quantity="time",
    why_none=(
        "The allocation is part of the call, and the rate stays below every limit: only the code shows it. "
        "Implementations here never allocate, which their contract demands"
    ),
    live_on=("cpu",),
    elsewhere="torch keeps what was freed on a GPU and hands it out again, so only its first calls would pay.",
    demonstrate=_demonstrate_result_allocated,
)


# The time of a large size is extrapolated from a tiny one.
TINY = 8


def _demonstrate_tiny_size(stage: Stage) -> MistakeObservation:
    """Extrapolate a product by its FLOPs from one of 8 × 8, and measure it."""
    size = {"cpu": 512, "cuda": 4096}[stage.device.kind]
    tiny = open_subject(stage, "matmul", Shape.of(m=TINY, k=TINY, n=TINY))
    overhead_s = call_overhead_s(tiny.case, tiny.group, stage.progress)
    return observe_tiny_size(tiny, open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage, overhead_s)


def observe_tiny_size(tiny: Subject, large: Subject, stage: Stage, overhead_s: float | None) -> MistakeObservation:
    """Compare the extrapolated time of `large` with its own; `overhead_s` is that of a call on one element."""
    times = large.flop_count / tiny.flop_count
    time_tiny = round_median(tiny, stage)
    pairs = interleave(lambda: time_tiny() * times, round_median(large, stage), stage)
    detection = flag_of(tiny, tuple(time_s / times for time_s in pairs.wrong), "launch_bound", overhead_s=overhead_s)
    note = f"The time of {tiny.what} times {times:,.0f}, which is how many times as many FLOPs the large one has."
    return replace(from_pairs(TINY_SIZE, pairs, large, detection), note=note)


TINY_SIZE = Mistake(
    name="tiny-size",
    title="What does a tiny size say of a large one?",
    rows=("B3", "E5"),
    wrong="A tiny size is timed, and the time is scaled with the FLOPs.",
    right="Measure the size that is meant, or scale from a size whose calls last long against their overhead.",
    wrong_code=("t_8 = timed(8)\nt_512 = t_8 * (512 / 8) ** 3"),
    right_code="t_512 = timed(512)",
    why=(
        "A call costs about a microsecond before anything is computed, a launch on a GPU several. "
        "At tiny sizes that is all there is to time, and it does not grow with the work."
    ),
    quantity="time",
    gives_away=Sign("flag", "launch_bound"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_tiny_size,
)


# A rate from the caches is reported as the memory's.


def _demonstrate_warm_cache(stage: Stage) -> MistakeObservation:
    """Time a vector addition with its operands in the caches and in memory."""
    shape = Shape.of(n={"cpu": 100_000, "cuda": 1_000_000}[stage.device.kind])
    warm, cold = (open_subject(stage, "vector_add", shape, options=Options(cache=cache)) for cache in ("warm", "cold"))
    return observe_warm_cache(warm, cold, stage)


def observe_warm_cache(warm: Subject, cold: Subject, stage: Stage) -> MistakeObservation:
    """Compare the rates of memory that a warm and a cold call seem to reach."""
    pairs = interleave(round_median(warm, stage), round_median(cold, stage), stage)
    return from_pairs(WARM_CACHE, pairs.as_rates(cold.byte_count), cold, flag_of(warm, pairs.wrong, "warm"))


WARM_CACHE = Mistake(
    name="warm-cache",
    title="Was it read from memory, or from a cache?",
    rows=("B3", "B4", "B5"),
    wrong="The same small arrays are read again and again, and the rate is told as the memory's.",
    right="Overwrite the last-level cache before each call, or say that the caches were warm.",
    wrong_code=("for _ in range(1000):\n    call()           # data stay in cache\nrate = bytes_moved / elapsed"),
    right_code=("for _ in range(1000):\n    overwrite(2 * last_level_cache_bytes)\n    elapsed.append(timed(call))"),
    why=(
        "What was read a moment ago is still in a cache, which delivers several times as fast as memory. "
        "A program that comes to the data for the first time waits for memory."
    ),
    quantity="memory rate",
    gives_away=Sign("flag", "warm"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_warm_cache,
)


# The CPU that is beaten uses one of its cores.
BASELINE_SIZE = 512


def _demonstrate_one_thread_baseline(stage: Stage) -> MistakeObservation:
    """Time NumPy's product on one core and on all of them."""
    shape = Shape.of(m=BASELINE_SIZE, k=BASELINE_SIZE, n=BASELINE_SIZE)
    one_core, all_cores = (
        open_subject(stage, "matmul", shape, options=Options(threads=threads)) for threads in (1, stage.device.cores)
    )
    return observe_one_thread_baseline(one_core, all_cores, stage)


def observe_one_thread_baseline(one_core: Subject, all_cores: Subject, stage: Stage) -> MistakeObservation:
    """Compare the times of a product on one core and on all of them."""
    pairs = interleave(_pinned(one_core, stage), _pinned(all_cores, stage), stage)
    return from_pairs(
        ONE_THREAD_BASELINE, pairs, all_cores, _unless_others_had_the_cores(pairs.factor, _idle_cores(one_core))
    )


def _unless_others_had_the_cores(factor: Factor, found: Detection) -> Detection:
    """Return that nothing was shown where one thread was the faster way: other work had the other cores."""
    if factor.ci95 is None or factor.ci95[1] >= 1:
        return found
    return Detection(
        None, f"one thread was faster than all: other work had the cores, measure again ({found.evidence})"
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


ONE_THREAD_BASELINE = Mistake(
    name="one-thread-baseline",
    title="How many cores did the CPU use that was beaten?",
    rows=("A2", "B4", "B5"),
    wrong="The baseline runs on one core, and the speedup over it is told as that over the CPU.",
    right="Give every library as many threads as there are cores, and tell the number.",
    wrong_code=("# OPENBLAS_NUM_THREADS=1\nspeedup = t_numpy / t_gpu"),
    right_code=("set_threads(physical_cores)\nspeedup = t_numpy / t_gpu"),
    why=(
        "A CPU has as many arithmetic units as it has cores, and a loop in Python, or a library that was pinned, "
        "uses one. A speedup over it grows with the number of cores that had no work."
    ),
    quantity="time",
    gives_away=Sign("diagnosis", "too_few_threads"),
    live_on=("cpu",),
    elsewhere="it is the CPU of a comparison that has too few threads.",
    demonstrate=_demonstrate_one_thread_baseline,
)


# The compiler removes a loop whose result is unused.
SUMMED_LENGTH = 10_000_000


def _demonstrate_unused_result(stage: Stage) -> MistakeObservation:
    """Time a sum that Numba compiles with and without somewhere to put it."""
    subject = open_subject(stage, "reduce_sum", Shape.of(m=1, n=SUMMED_LENGTH))
    (x,) = subject.group.timed_reference.inputs
    unused, used = _compiled(x[0], np.empty(1, x.dtype))
    seen = observe_unused_result(subject, stage, unused, used)
    return replace(seen, what=f"a sum of {SUMMED_LENGTH:,} numbers in fp32, a loop compiled by Numba")


def observe_unused_result(subject: Subject, stage: Stage, unused: Call, used: Call) -> MistakeObservation:
    """Compare the rates of two calls, the first of which does nothing with its sum; `subject` counts the FLOPs."""
    pairs = interleave(
        round_median(_calling(subject, unused, stage), stage),
        round_median(_calling(subject, used, stage), stage),
        stage,
    )
    detection = flag_of(subject, pairs.wrong, "over_peak")
    return from_pairs(UNUSED_RESULT, pairs.as_rates(subject.flop_count), subject, detection)


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


UNUSED_RESULT = Mistake(
    name="unused-result",
    title="Did the compiler leave anything to time?",
    rows=("B3", "B4"),
    wrong="The kernel computes something that nobody reads.",
    right="Write every result into an output, and check it against a reference.",
    wrong_code=(
        "@njit\ndef kernel(x):\n    total = 0\n    for i in range(x.size):\n        total += x[i]        # never used"
    ),
    right_code=(
        "@njit\n"
        "def kernel(x, out):\n"
        "    total = 0\n"
        "    for i in range(x.size):\n"
        "        total += x[i]\n"
        "    out[0] = total           # and checked"
    ),
    why=(
        "A compiler removes what has no effect, here the whole loop: the call returns at once. "
        "The FLOPs are still counted, so the rate passes what the hardware can do."
    ),
    quantity="compute rate",
    gives_away=Sign("flag", "over_peak"),
    live_on=("cpu",),
    elsewhere="NVVM removes such loops from CUDA kernels in the same way.",
    demonstrate=_demonstrate_unused_result,
)


MISTAKES = (TRANSFER_COUNTED, RESULT_ALLOCATED, TINY_SIZE, WARM_CACHE, ONE_THREAD_BASELINE, UNUSED_RESULT)
