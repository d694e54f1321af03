"""The first call, with compilation and loading, is taken for the call."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpuexplore.backends.timer import Call
from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs, no_sign
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape

LENGTH = 1_000_000


def demonstrate(stage: Stage) -> Observation:
    """Time the first call of a function that Numba compiles anew each time, and later calls."""
    subject = open_subject(stage, "vector_add", Shape.of(n=LENGTH))
    a, b = subject.group.timed_reference.inputs
    out = np.empty_like(a)
    seen = observe(subject, stage, lambda: _freshly_compiled(a, b, out))
    return replace(seen, what=f"vector_add at {LENGTH:,} in fp32, a loop compiled by Numba without its cache")


def observe(subject: Subject, stage: Stage, fresh: Callable[[], Call]) -> Observation:
    """Compare first calls of functions that `fresh` makes with later calls of the last of them.

    The subject only lends its clock and its environment.
    """
    latest = _Latest(fresh)

    def first() -> float:
        run = latest.renew()
        start = stage.time.clock()
        run()
        return (stage.time.clock() - start) * 1e-9

    warm = replace(subject, candidate=replace(subject.candidate, run=latest))
    pairs = take_turns(first, round_median(warm, stage), stage)
    return from_pairs(MISTAKE, pairs, subject, no_sign(MISTAKE))


@dataclass
class _Latest:
    """Calls the function that was made last; it was called before."""

    fresh: Callable[[], Call]
    run: Call | None = field(default=None)

    def renew(self) -> Call:
        self.run = self.fresh()
        return self.run

    def __call__(self) -> object:
        if self.run is None:
            self.renew()()
        return self.run() if self.run else None


def _freshly_compiled(a: Any, b: Any, out: Any) -> Call:
    from numba import njit

    def add(a: Any, b: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = a[i] + b[i]

    compiled = njit(add)
    return lambda: compiled(a, b, out)


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
