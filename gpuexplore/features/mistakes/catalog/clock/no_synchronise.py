"""The clock is stopped when the work was submitted, not when it was done."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gpuexplore.backends.timer import Call
from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, flag_of, open_subject
from gpuexplore.features.mistakes.catalog.turns import Procedure, take_turns
from gpuexplore.model import Shape

SIZES = {"cpu": 512, "cuda": 4096}
QUEUE_OF_ONE = "A queue of one thread stands in for the GPU's stream: the clock stops when the call was put into it."

Submit = Callable[[Call], Call]  # starts the work, and returns what waits for it


def demonstrate(stage: Stage) -> Observation:
    """Time a product at its submission and at its end."""
    size = SIZES[stage.device.kind]
    subject = open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size))
    if stage.device.kind == "cuda":
        return observe(subject, stage, lambda run: (run(), _wait(subject))[1])
    with ThreadPoolExecutor(1) as queue:
        return replace(observe(subject, stage, lambda run: queue.submit(run).result), note=QUEUE_OF_ONE)


def observe(subject: Subject, stage: Stage, submit: Submit) -> Observation:
    """Compare the rates by both clocks."""
    pairs = take_turns(
        _timed(subject, stage, submit, is_waited_for=False), _timed(subject, stage, submit, is_waited_for=True), stage
    )
    detection = flag_of(subject, pairs.wrong, "over_peak")
    return from_pairs(MISTAKE, pairs.as_rates(subject.flop_count), subject, detection)


def _timed(subject: Subject, stage: Stage, submit: Submit, *, is_waited_for: bool) -> Procedure:
    def take() -> float:
        start = stage.time.clock()
        wait = submit(subject.candidate.run)
        if is_waited_for:
            wait()
        elapsed_s = (stage.time.clock() - start) * 1e-9
        wait()  # the next sample begins with an empty queue
        return elapsed_s

    return take


def _wait(subject: Subject) -> Call:
    return lambda: subject.candidate.backend.synchronize(subject.case.device)


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
