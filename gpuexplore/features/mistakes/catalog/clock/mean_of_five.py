"""The mean of five calls stands for all of them."""

from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, single_calls
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape
from gpuexplore.statistics import SMALLEST_SAMPLE_WITH_INTERVAL, median, median_interval
from gpuexplore.units import format_seconds

FEW, MANY = 5, 25
SIZES = {"cpu": 256, "cuda": 1024}


def demonstrate(stage: Stage) -> Observation:
    """Take the mean of five calls and the median of 25, again and again."""
    size = SIZES[stage.device.kind]
    return observe(open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage)


def observe(subject: Subject, stage: Stage) -> Observation:
    """Compare the mean of five calls with the median of 25."""
    last_five: list[float] = []

    def mean() -> float:
        last_five[:] = single_calls(subject, stage, FEW)
        return sum(last_five) / FEW

    pairs = take_turns(mean, lambda: median(single_calls(subject, stage, MANY)), stage)
    return from_pairs(MISTAKE, pairs, subject, _detection(last_five, pairs.wrong))


def _detection(five_s: list[float], means_s: tuple[float, ...]) -> Detection:
    """Return whether five samples lack an interval, and how far means of five lie apart."""
    spread = f"the means of five went from {format_seconds(min(means_s))} to {format_seconds(max(means_s))}"
    needed = f"{FEW} samples, and a 95 % interval of the median takes {SMALLEST_SAMPLE_WITH_INTERVAL}"
    return Detection(median_interval(five_s) is None, f"{needed}; {spread}")


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
