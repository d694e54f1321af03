"""Mistakes in when the clock is read, and in what is made of its readings."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import cycle
from time import sleep
from typing import Any

import numpy as np

from gpuexplore.backends.timer import Call
from gpuexplore.core.model import Shape, Telemetry
from gpuexplore.core.statistics import SMALLEST_SAMPLE_WITH_INTERVAL, median, median_interval
from gpuexplore.core.units import format_seconds
from gpuexplore.features.mistakes.catalog.contract import (
    Demonstrate,
    Detection,
    Mistake,
    MistakeObservation,
    Sign,
    Stage,
)
from gpuexplore.features.mistakes.catalog.subject import (
    Procedure,
    Subject,
    flag_of,
    from_pairs,
    interleave,
    no_sign,
    open_subject,
    round_median,
    single_calls,
)
from gpuexplore.hardware import read as read_telemetry


def _on_a_product(observe: Callable[[Subject, Stage], MistakeObservation]) -> Demonstrate:
    """Return what makes a mistake on a product."""

    def demonstrate(stage: Stage) -> MistakeObservation:
        size = {"cpu": 256, "cuda": 1024}[stage.device.kind]
        return observe(open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage)

    return demonstrate


# The clock is stopped when the work was submitted, not when it was done.

Submit = Callable[[Call], Call]  # starts the work, and returns what waits for it


def _demonstrate_no_synchronise(stage: Stage) -> MistakeObservation:
    """Time a product at its submission and at its end."""
    size = {"cpu": 512, "cuda": 4096}[stage.device.kind]
    subject = open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size))
    if stage.device.kind == "cuda":
        wait = partial(subject.candidate.backend.synchronize, subject.case.device)
        return observe_no_synchronise(subject, stage, lambda run: (run(), wait)[1])
    with ThreadPoolExecutor(1) as queue:
        return replace(
            observe_no_synchronise(subject, stage, lambda run: queue.submit(run).result),
            note="A queue of one thread stands in for the GPU's stream: the clock stops when the call was put into it.",
        )


def observe_no_synchronise(subject: Subject, stage: Stage, submit: Submit) -> MistakeObservation:
    """Compare the rates by both clocks."""
    pairs = interleave(
        _timed_until(subject, stage, submit, is_waited_for=False),
        _timed_until(subject, stage, submit, is_waited_for=True),
        stage,
    )
    detection = flag_of(subject, pairs.wrong, "over_peak")
    return from_pairs(NO_SYNCHRONISE, pairs.as_rates(subject.flop_count), subject, detection)


def _timed_until(subject: Subject, stage: Stage, submit: Submit, *, is_waited_for: bool) -> Procedure:
    def take() -> float:
        start = stage.clock()
        wait = submit(subject.candidate.run)
        if is_waited_for:
            wait()
        elapsed_s = (stage.clock() - start) * 1e-9
        wait()  # the next sample begins with an empty queue
        return elapsed_s

    return take


NO_SYNCHRONISE = Mistake(
    name="no-synchronise",
    title="Was the clock stopped before the work was done?",
    rows=("A2", "B5"),
    wrong="The clock is stopped as soon as the call returns.",
    right="Wait for the device before the clock is read.",
    wrong_code=("start = perf_counter()\nc = a @ b            # only queued\nelapsed = perf_counter() - start"),
    right_code=(
        "torch.cuda.synchronize()\nstart = perf_counter()\nc = a @ b\n"
        "torch.cuda.synchronize()  # now it is done\nelapsed = perf_counter() - start"
    ),
    why=(
        "A call on a GPU puts work into a queue and returns after some microseconds, however long the work takes. "
        "What was timed is the launch, so the rate grows with the size until it passes what the hardware can do."
    ),
    quantity="compute rate",
    gives_away=Sign("flag", "over_peak"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_no_synchronise,
)


# The first call, with compilation and loading, is taken for the call.
COMPILED_LENGTH = 1_000_000


def _demonstrate_first_call(stage: Stage) -> MistakeObservation:
    """Time the first call of a function that Numba compiles anew each time, and later calls."""
    subject = open_subject(stage, "vector_add", Shape.of(n=COMPILED_LENGTH))
    a, b = subject.group.timed_reference.inputs
    out = np.empty_like(a)
    seen = observe_first_call(subject, stage, lambda: _freshly_compiled(a, b, out))
    return replace(seen, what=f"vector_add at {COMPILED_LENGTH:,} in fp32, a loop compiled by Numba without its cache")


def observe_first_call(subject: Subject, stage: Stage, fresh: Callable[[], Call]) -> MistakeObservation:
    """Compare first calls of functions that `fresh` makes with later calls of the last of them.

    The subject only lends its clock and its environment.
    """
    latest: Call | None = None

    def first() -> float:
        nonlocal latest
        latest = fresh()
        start = stage.clock()
        latest()
        return (stage.clock() - start) * 1e-9

    def again() -> object:
        nonlocal latest
        if latest is None:
            latest = fresh()
            latest()
        return latest()

    warm = replace(subject, candidate=replace(subject.candidate, run=again))
    return from_pairs(FIRST_CALL, interleave(first, round_median(warm, stage), stage), subject, no_sign(FIRST_CALL))


def _freshly_compiled(a: Any, b: Any, out: Any) -> Call:
    from numba import njit

    def add(a: Any, b: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = a[i] + b[i]

    compiled = njit(add)
    return lambda: compiled(a, b, out)


FIRST_CALL = Mistake(
    name="first-call",
    title="How long does the first call take, and how long every other?",
    rows=("A2", "E4"),
    wrong="One call is timed, the very first.",
    right="Call once without timing it, then time many calls; tell the first call apart.",
    wrong_code=(
        "kernel = njit(add)\nstart = perf_counter()\nkernel(a, b, out)    # compiles, then runs\nelapsed = ..."
    ),
    right_code=(
        "kernel = njit(add)\n"
        "kernel(a, b, out)    # first_call_s\n"
        "start = perf_counter()\n"
        "kernel(a, b, out)\n"
        "elapsed = ..."
    ),
    why=(
        "The first call compiles the kernel, loads a library or lets it choose an algorithm. "
        "Later calls find all of that done, so the first one says nothing about them."
    ),
    quantity="time",
    why_none=(
        "One long time is as plausible as another, so nothing in it tells a first call from a slow kernel. "
        "Every result therefore carries its first call as a figure of its own, first_call_s"
    ),
    live_on=("cpu",),
    elsewhere="CUDA kernels compile in the same way; what is measured there is told as first_call_s of every result.",
    demonstrate=_demonstrate_first_call,
)


# The mean of five calls stands for all of them.
FEW = 5


def observe_mean_of_five(subject: Subject, stage: Stage) -> MistakeObservation:
    """Compare the mean of five calls with the median of 25."""
    last_five: list[float] = []

    def mean() -> float:
        last_five[:] = single_calls(subject, stage, FEW)
        return sum(last_five) / FEW

    pairs = interleave(mean, lambda: median(single_calls(subject, stage, 25)), stage)
    return from_pairs(MEAN_OF_FIVE, pairs, subject, _too_few(last_five, pairs.wrong))


def _too_few(five_s: list[float], means_s: tuple[float, ...]) -> Detection:
    """Return whether five samples lack an interval, and how far means of five lie apart."""
    spread = f"the means of five went from {format_seconds(min(means_s))} to {format_seconds(max(means_s))}"
    needed = f"{FEW} samples, and a 95 % interval of the median takes {SMALLEST_SAMPLE_WITH_INTERVAL}"
    return Detection(median_interval(five_s) is None, f"{needed}; {spread}")


MEAN_OF_FIVE = Mistake(
    name="mean-of-five",
    title="What does the mean of five calls say?",
    rows=("E4",),
    wrong="Five calls are timed, and their mean is told without its spread.",
    right="Time until the 95 % interval of the median is narrow, and tell both.",
    wrong_code=("elapsed = []\nfor _ in range(5):\n    elapsed.append(timed(call))\nresult = mean(elapsed)"),
    right_code=(
        "elapsed = []\n"
        "while not within_1_percent(elapsed):\n"
        "    elapsed.append(timed(call))\n"
        "result = median(elapsed), interval(elapsed)"
    ),
    why=(
        "Times are skewed: a call can be disturbed for long, and can never be much faster than undisturbed. "
        "One disturbed call of five moves the mean by a fifth of its delay, and leaves the median where it is."
    ),
    quantity="time",
    gives_away=Sign("check", "fewer than six samples: no 95 % interval exists"),
    live_on=("cpu", "cuda"),
    demonstrate=_on_a_product(observe_mean_of_five),
)


# The fastest call stands for all of them.
CALLS_OF_MINIMUM = 20


def observe_minimum(subject: Subject, stage: Stage) -> MistakeObservation:
    """Compare the fastest of 20 calls with the median of 20."""
    samples_s: list[float] = []

    def usual() -> float:
        calls_s = single_calls(subject, stage, CALLS_OF_MINIMUM)
        samples_s.extend(calls_s)
        return median(calls_s)

    pairs = interleave(lambda: min(single_calls(subject, stage, CALLS_OF_MINIMUM)), usual, stage)
    detection = flag_of(subject, tuple(samples_s), "noisy")
    return replace(from_pairs(MINIMUM, pairs, subject, detection), note=f"Of {CALLS_OF_MINIMUM} calls each.")


MINIMUM = Mistake(
    name="minimum",
    title="Is the fastest call the true one?",
    rows=("E4",),
    wrong="The fastest call is told, as if the others were disturbed.",
    right="Tell the median with its interval; keep every sample.",
    wrong_code="result = min(elapsed)",
    right_code="result = median(elapsed), interval(elapsed)",
    why=(
        "The minimum is a call that met the best of everything, and the more calls there are the lower it gets. "
        "It flatters whatever scatters most, so a noisy implementation wins against a steady one."
    ),
    quantity="time",
    gives_away=Sign("flag", "noisy"),
    live_on=("cpu", "cuda"),
    demonstrate=_on_a_product(observe_minimum),
)


# Two implementations are timed one after the other, so whatever drifts meanwhile goes into their ratio.
CALLS_OF_BLOCK = 12


def observe_not_interleaved(subject: Subject, stage: Stage) -> MistakeObservation:
    """Compare the ratio of two blocks of calls with the ratio of interleaved calls; the true one is 1."""
    first_is_second = cycle((False, True))

    def in_blocks() -> float:
        before = median(single_calls(subject, stage, CALLS_OF_BLOCK))
        return median(single_calls(subject, stage, CALLS_OF_BLOCK)) / before

    def interleaved() -> float:
        calls_s = single_calls(subject, stage, 2 * CALLS_OF_BLOCK)
        pairs = zip(calls_s[::2], calls_s[1::2], strict=True)
        return median([second / first if next(first_is_second) else first / second for first, second in pairs])

    pairs = interleave(in_blocks, interleaved, stage)
    return from_pairs(NOT_IN_TURNS, pairs, subject, no_sign(NOT_IN_TURNS))


NOT_IN_TURNS = Mistake(
    name="not-in-turns",
    title="Is one implementation as fast as itself?",
    rows=("B3", "B4", "E7"),
    wrong="All calls of one implementation are timed, then all of the other.",
    right="Let them take turns in random order, and take the ratio round by round.",
    wrong_code=(
        "first  = [timed(a) for _ in range(12)]\n"
        "second = [timed(b) for _ in range(12)]\n"
        "speedup = median(first) / median(second)"
    ),
    right_code=(
        "for _ in rounds:\n"
        "    for call in shuffled([a, b]):\n"
        "        take(call)\n"
        "speedup = median(a / b for a, b in rounds)"
    ),
    why=(
        "Clocks, temperature and neighbours drift over seconds, so what is timed later is timed on another machine. "
        "In turns the drift hits both alike, and leaves their ratio."
    ),
    quantity="ratio",
    why_none=(
        "The samples of each block agree with each other, so neither is noisy: the drift is in the ratio alone, "
        "and no result holds a ratio"
    ),
    live_on=("cpu", "cuda"),
    demonstrate=_on_a_product(observe_not_interleaved),
)


# One call after a pause: clocks are low, and threads asleep.
Pause = Callable[[], object]


def _demonstrate_idle_clocks(stage: Stage) -> MistakeObservation:
    """Time one call of a product after a pause, and calls that follow each other."""
    size = {"cpu": 256, "cuda": 2048}[stage.device.kind]
    pause_s = {"cpu": 0.1, "cuda": 0.4}[stage.device.kind]
    subject = open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size))
    return observe_idle_clocks(subject, stage, lambda: sleep(pause_s), lambda: read_telemetry(stage.device))


def observe_idle_clocks(
    subject: Subject, stage: Stage, pause: Pause, look: Callable[[], Telemetry]
) -> MistakeObservation:
    """Compare a call after `pause` with calls after each other; `look` reads the device's state after the former."""
    seen: list[Telemetry] = []

    def after_a_pause() -> float:
        pause()
        elapsed_s = subject.candidate.first_call_s(stage.clock)
        seen.append(look())
        return elapsed_s

    pairs = interleave(after_a_pause, round_median(subject, stage), stage)
    return from_pairs(IDLE_CLOCKS, pairs, subject, _throttled(subject, pairs.wrong, seen[-1]))


def _throttled(subject: Subject, samples_s: tuple[float, ...], after: Telemetry) -> Detection:
    if subject.group.device.kind == "cpu":
        return Detection(
            None, "no flag looks at a CPU's clock, which turns up within a call; its threads, which sleep, cost more"
        )
    return flag_of(subject, samples_s, "throttled", environment=replace(subject.environment, after=after))


IDLE_CLOCKS = Mistake(
    name="idle-clocks",
    title="How fast is a device that has just woken up?",
    rows=("A2", "A3"),
    wrong="One call is timed after a pause, as a cell of a notebook does.",
    right="Call for 25 ms on a CPU, for 0.2 s on a GPU, before anything is timed.",
    wrong_code=(
        "# the device has idled since the last cell\nstart = perf_counter()\ncall()\nelapsed = perf_counter() - start"
    ),
    right_code=("while seconds_since(begin) < 0.2:\n    call()           # clocks go up\nelapsed = timed(call)"),
    why=(
        "A GPU lowers its clock when it idles and takes tens of milliseconds to raise it. "
        "On a CPU the threads of a library sleep, and waking them costs more than a short call."
    ),
    quantity="time",
    gives_away=Sign("flag", "throttled"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_idle_clocks,
)


MISTAKES = (NO_SYNCHRONISE, FIRST_CALL, MEAN_OF_FIVE, MINIMUM, NOT_IN_TURNS, IDLE_CLOCKS)
