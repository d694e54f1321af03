"""Two implementations are timed one after the other, so whatever drifts meanwhile goes into their ratio."""

from itertools import cycle

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs, no_sign
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, single_calls
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape
from gpuexplore.statistics import median

CALLS = 12
SIZES = {"cpu": 256, "cuda": 1024}


def demonstrate(stage: Stage) -> Observation:
    """Compare a product with itself: whatever differs from 1 is the method's own."""
    size = SIZES[stage.device.kind]
    return observe(open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage)


def observe(subject: Subject, stage: Stage) -> Observation:
    """Compare the ratio of two blocks of calls with the ratio of calls in turns; the true one is 1."""
    first_is_second = cycle((False, True))

    def in_blocks() -> float:
        before = median(single_calls(subject, stage, CALLS))
        return median(single_calls(subject, stage, CALLS)) / before

    def in_turns() -> float:
        calls_s = single_calls(subject, stage, 2 * CALLS)
        pairs = zip(calls_s[::2], calls_s[1::2], strict=True)
        return median([second / first if next(first_is_second) else first / second for first, second in pairs])

    pairs = take_turns(in_blocks, in_turns, stage)
    return from_pairs(MISTAKE, pairs, subject, no_sign(MISTAKE))


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
