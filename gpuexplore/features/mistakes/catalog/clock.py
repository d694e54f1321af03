"""Mistakes in when the clock is read, and in what is made of its readings."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import cycle
from time import sleep
from typing import Any

import numpy as np

from gpuexplore.backends import Call
from gpuexplore.core import SMALLEST_SAMPLE_WITH_INTERVAL, Shape, Telemetry, format_seconds, median, median_interval
from gpuexplore.features.mistakes.catalog import Demonstrate, Detection, MistakeObservation, Stage, no_sign
from gpuexplore.features.mistakes.catalog.subject import (
    Procedure,
    Subject,
    flag_of,
    from_pairs,
    interleave,
    open_subject,
    round_median,
)
from gpuexplore.hardware import read as read_telemetry
from gpuexplore.measure.candidates.candidate import wake


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
        return _observe_no_synchronise(subject, stage, lambda run: (run(), wait)[1])
    with ThreadPoolExecutor(1) as queue:
        return replace(
            _observe_no_synchronise(subject, stage, lambda run: queue.submit(run).result),
            note="A queue with one thread stands in for the GPU's stream: the clock stops once the call is enqueued.",
        )


def _observe_no_synchronise(subject: Subject, stage: Stage, submit: Submit) -> MistakeObservation:
    """Compare the rates by both clocks."""
    pairs = interleave(
        _timed_until(subject, stage, submit, is_waited_for=False),
        _timed_until(subject, stage, submit, is_waited_for=True),
        stage,
    )
    detection = flag_of(subject, pairs.wrong, "over_peak")
    return from_pairs("no-synchronise", pairs.as_rates(subject.flop_count), subject, detection)


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


# The first call, with compilation and loading, is taken for the call.


def _demonstrate_first_call(stage: Stage) -> MistakeObservation:
    """Time the first call of a function that Numba compiles anew each time, and later calls."""
    length = 1_000_000
    subject = open_subject(stage, "vector_add", Shape.of(n=length))
    a, b = subject.group.timed_reference.inputs
    out = np.empty_like(a)
    seen = _observe_first_call(subject, stage, lambda: _freshly_compiled(a, b, out))
    return replace(seen, what=f"vector_add at {length:,} in fp32, a loop compiled by Numba without its cache")


def _observe_first_call(subject: Subject, stage: Stage, fresh: Callable[[], Call]) -> MistakeObservation:
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
    return from_pairs("first-call", interleave(first, round_median(warm, stage), stage), subject, no_sign("first-call"))


def _freshly_compiled(a: Any, b: Any, out: Any) -> Call:
    from numba import njit

    def add(a: Any, b: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = a[i] + b[i]

    compiled = njit(add)
    return lambda: compiled(a, b, out)


# The mean of five calls stands for all of them.


def _observe_mean_of_five(subject: Subject, stage: Stage) -> MistakeObservation:
    """Compare the mean of five calls with the median of 25."""
    last_five: list[float] = []

    def mean() -> float:
        last_five[:] = _single_calls(subject, stage, 5)
        return sum(last_five) / len(last_five)

    pairs = interleave(mean, lambda: median(_single_calls(subject, stage, 25)), stage)
    # Whether five samples lack an interval, and how far means of five lie apart.
    spread = f"means of five ranged from {format_seconds(min(pairs.wrong))} to {format_seconds(max(pairs.wrong))}"
    needed = f"{len(last_five)} samples, and a 95 % interval of the median takes {SMALLEST_SAMPLE_WITH_INTERVAL}"
    return from_pairs(
        "mean-of-five", pairs, subject, Detection(median_interval(last_five) is None, f"{needed}; {spread}")
    )


def _single_calls(subject: Subject, stage: Stage, count: int) -> list[float]:
    """Return seconds of `count` calls, timed one by one, after the calls that wake threads."""
    stage.isolation.wait_for_idle_threads()
    with stage.isolation.isolate_core():
        wake(subject.candidate, subject.call_s, stage.clock)
        return [subject.candidate.first_call_s(stage.clock) for _ in range(count)]


# The fastest call stands for all of them.


def _observe_minimum(subject: Subject, stage: Stage) -> MistakeObservation:
    """Compare the fastest of 20 calls with the median of 20."""
    count = 20
    samples_s: list[float] = []

    def usual() -> float:
        calls_s = _single_calls(subject, stage, count)
        samples_s.extend(calls_s)
        return median(calls_s)

    pairs = interleave(lambda: min(_single_calls(subject, stage, count)), usual, stage)
    detection = flag_of(subject, tuple(samples_s), "noisy")
    return replace(from_pairs("minimum", pairs, subject, detection), note=f"Of {count} calls each.")


# Two implementations are timed one after the other, so whatever drifts meanwhile goes into their ratio.


def _observe_not_interleaved(subject: Subject, stage: Stage) -> MistakeObservation:
    """Compare the ratio of two blocks of calls with the ratio of interleaved calls; the true one is 1."""
    count = 12  # calls of a block
    first_is_second = cycle((False, True))

    def in_blocks() -> float:
        before = median(_single_calls(subject, stage, count))
        return median(_single_calls(subject, stage, count)) / before

    def interleaved() -> float:
        calls_s = _single_calls(subject, stage, 2 * count)
        pairs = zip(calls_s[::2], calls_s[1::2], strict=True)
        return median([second / first if next(first_is_second) else first / second for first, second in pairs])

    pairs = interleave(in_blocks, interleaved, stage)
    return from_pairs("not-in-turns", pairs, subject, no_sign("not-in-turns"))


# One call after a pause: clocks are low, and threads asleep.


def _demonstrate_idle_clocks(stage: Stage) -> MistakeObservation:
    """Time one call of a product after a pause, and calls that follow each other."""
    size = {"cpu": 256, "cuda": 2048}[stage.device.kind]
    pause_s = {"cpu": 0.1, "cuda": 0.4}[stage.device.kind]
    subject = open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size))
    return _observe_idle_clocks(subject, stage, lambda: sleep(pause_s), lambda: read_telemetry(stage.device))


def _observe_idle_clocks(
    subject: Subject, stage: Stage, pause: Call, look: Callable[[], Telemetry]
) -> MistakeObservation:
    """Compare a call after `pause` with calls after each other; `look` reads the device's state after the former."""
    seen: list[Telemetry] = []

    def after_a_pause() -> float:
        pause()
        elapsed_s = subject.candidate.first_call_s(stage.clock)
        seen.append(look())
        return elapsed_s

    pairs = interleave(after_a_pause, round_median(subject, stage), stage)
    return from_pairs("idle-clocks", pairs, subject, _throttled(subject, pairs.wrong, seen[-1]))


def _throttled(subject: Subject, samples_s: tuple[float, ...], after: Telemetry) -> Detection:
    if subject.group.device.kind == "cpu":
        return Detection(
            None, "no flag looks at a CPU's clock, which rises within one call; waking its sleeping threads costs more"
        )
    return flag_of(subject, samples_s, "throttled", environment=replace(subject.environment, after=after))


DEMONSTRATIONS: Mapping[str, Demonstrate] = {
    "no-synchronise": _demonstrate_no_synchronise,
    "first-call": _demonstrate_first_call,
    "mean-of-five": _on_a_product(_observe_mean_of_five),
    "minimum": _on_a_product(_observe_minimum),
    "not-in-turns": _on_a_product(_observe_not_interleaved),
    "idle-clocks": _demonstrate_idle_clocks,
}
