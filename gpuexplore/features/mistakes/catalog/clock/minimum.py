"""The fastest call stands for all of them."""

from dataclasses import replace

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, flag_of, open_subject, single_calls
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape
from gpuexplore.statistics import median

CALLS = 20
SIZES = {"cpu": 256, "cuda": 1024}


def demonstrate(stage: Stage) -> Observation:
    """Take minimum and median of 20 calls of a product, again and again."""
    size = SIZES[stage.device.kind]
    return observe(open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage)


def observe(subject: Subject, stage: Stage) -> Observation:
    """Compare the fastest of 20 calls with the median of 20."""
    samples_s: list[float] = []

    def usual() -> float:
        calls_s = single_calls(subject, stage, CALLS)
        samples_s.extend(calls_s)
        return median(calls_s)

    pairs = take_turns(lambda: min(single_calls(subject, stage, CALLS)), usual, stage)
    detection = flag_of(subject, tuple(samples_s), "noisy")
    return replace(from_pairs(MISTAKE, pairs, subject, detection), note=f"Of {CALLS} calls each.")


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
