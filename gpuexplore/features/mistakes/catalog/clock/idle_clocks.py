"""One call after a pause: clocks are low, and threads asleep."""

from collections.abc import Callable
from dataclasses import replace
from time import sleep

from gpuexplore.devices import read as read_telemetry
from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, flag_of, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape, Telemetry

PAUSES_S = {"cpu": 0.1, "cuda": 0.4}
SIZES = {"cpu": 256, "cuda": 2048}
Pause = Callable[[], object]
ON_A_CPU = "no flag looks at a CPU's clock, which turns up within a call; its threads, which sleep, cost more"


def demonstrate(stage: Stage) -> Observation:
    """Time one call of a product after a pause, and calls that follow each other."""
    size, pause_s = SIZES[stage.device.kind], PAUSES_S[stage.device.kind]
    subject = open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size))
    return observe(subject, stage, lambda: sleep(pause_s), lambda: read_telemetry(stage.device))


def observe(subject: Subject, stage: Stage, pause: Pause, look: Callable[[], Telemetry]) -> Observation:
    """Compare a call after `pause` with calls after each other; `look` reads the device's state after the former."""
    seen: list[Telemetry] = []

    def after_a_pause() -> float:
        pause()
        elapsed_s = subject.candidate.first_call_s(stage.time.clock)
        seen.append(look())
        return elapsed_s

    pairs = take_turns(after_a_pause, round_median(subject, stage), stage)
    return from_pairs(MISTAKE, pairs, subject, _detection(subject, pairs.wrong, seen[-1]))


def _detection(subject: Subject, samples_s: tuple[float, ...], after: Telemetry) -> Detection:
    if subject.group.device.kind == "cpu":
        return Detection(None, ON_A_CPU)
    return flag_of(subject, samples_s, "throttled", environment=replace(subject.environment, after=after))


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
