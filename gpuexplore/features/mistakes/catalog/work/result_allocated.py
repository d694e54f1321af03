"""The result is allocated in every call, and the allocation timed with it."""

from collections.abc import Callable
from dataclasses import replace

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs, no_sign
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape

LENGTH = 12_000_000  # 48 MB: above 32 MiB the C library asks the system for fresh pages each time


def demonstrate(stage: Stage) -> Observation:
    """Time NumPy's addition into a new array and into one that is there."""
    subject = open_subject(stage, "vector_add", Shape.of(n=LENGTH))
    a, b = subject.group.timed_reference.inputs
    return observe(subject, stage, lambda: a + b)


def observe(subject: Subject, stage: Stage, allocating: Callable[[], object]) -> Observation:
    """Compare a call that allocates its result with one that writes into an output."""
    other = replace(subject, candidate=replace(subject.candidate, run=allocating))
    pairs = take_turns(round_median(other, stage), round_median(subject, stage), stage)
    return from_pairs(MISTAKE, pairs, subject, no_sign(MISTAKE))


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
