"""The compiler removes a loop whose result nobody uses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpuexplore.backends.timer import Call
from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, flag_of, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape

LENGTH = 10_000_000


def demonstrate(stage: Stage) -> Observation:
    """Time a sum that Numba compiles with and without somewhere to put it."""
    subject = open_subject(stage, "reduce_sum", Shape.of(m=1, n=LENGTH))
    (x,) = subject.group.timed_reference.inputs
    unused, used = _compiled(x[0], np.empty(1, x.dtype))
    seen = observe(subject, stage, unused, used)
    return replace(seen, what=f"a sum of {LENGTH:,} numbers in fp32, a loop compiled by Numba")


def observe(subject: Subject, stage: Stage, unused: Call, used: Call) -> Observation:
    """Compare the rates of two calls, the first of which does nothing with its sum; `subject` counts the FLOPs."""
    pairs = take_turns(
        round_median(_calling(subject, unused, stage), stage),
        round_median(_calling(subject, used, stage), stage),
        stage,
    )
    detection = flag_of(subject, pairs.wrong, "over_peak")
    return from_pairs(MISTAKE, pairs.as_rates(subject.flop_count), subject, detection)


def _calling(subject: Subject, run: Call, stage: Stage) -> Subject:
    candidate = replace(subject.candidate, run=run)
    candidate.first_call_s(stage.time.clock)  # compiles
    return replace(subject, candidate=candidate, call_s=candidate.first_call_s(stage.time.clock))


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

    without, within = njit(unused), njit(used)
    return lambda: without(x), lambda: within(x, out)


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
