"""Bringing the data to the device and back is timed with the computation."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs, no_sign
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Shape

LENGTHS = {"cpu": 1_000_000, "cuda": 16_000_000}
BACK: Mapping[str, Callable[[Any], object]] = {"cpu": lambda out: out.copy(), "cuda": lambda out: out.cpu()}
WITHIN_MEMORY = "A CPU has no transfer: copies within its memory, of the inputs and of the result, stand in for it."


def demonstrate(stage: Stage) -> Observation:
    """Time a vector addition with and without copies of its inputs and its result."""
    subject = open_subject(stage, "vector_add", Shape.of(n=LENGTHS[stage.device.kind]))
    seen = observe(subject, stage, lambda: _bring(subject), lambda: BACK[stage.device.kind](subject.candidate.out))
    return replace(seen, how="emulated", note=WITHIN_MEMORY) if stage.device.kind == "cpu" else seen


def observe(
    subject: Subject, stage: Stage, bring: Callable[[], object], take_back: Callable[[], object]
) -> Observation:
    """Compare a call between `bring` and `take_back` with a call alone."""

    def call() -> object:
        bring()
        subject.candidate.run()
        return take_back()

    moved = replace(subject, candidate=replace(subject.candidate, run=call))
    pairs = take_turns(lambda: moved.candidate.first_call_s(stage.time.clock), round_median(subject, stage), stage)
    return from_pairs(MISTAKE, pairs, subject, no_sign(MISTAKE))


def _bring(subject: Subject) -> None:
    candidate = subject.candidate
    for array in subject.group.timed_reference.inputs:
        candidate.backend.to_device(array, candidate.dtype, candidate.case.device)


MISTAKE = Mistake(
    name="transfer-counted",
    title="Does the time of a kernel hold the way to the device?",
    rows=("A2", "B7", "C2"),
    wrong="Copies to the device and back are timed with the kernel, and told as the kernel's time.",
    right="Bring the data there before the clock starts; time the transfer as a quantity of its own.",
    wrong_code=("start = perf_counter()\nc = (a.to(device) + b.to(device)).cpu()\nelapsed = perf_counter() - start"),
    right_code=("a, b = a.to(device), b.to(device)\nstart.record()\ntorch.add(a, b, out=c)\nend.record()"),
    why=(
        "A kernel reads its operands from memory at hundreds of gigabytes per second, the bus brings tens. "
        "What is timed is then the bus, and the same kernel in the middle of a computation takes a fraction of it."
    ),
    quantity="time",
    why_none=(
        "A time does not tell what it was spent on, and a slow kernel looks the same. The diagnosis transfer_dominates "
        "says what a transfer would add to a result on a GPU that is compared with a CPU"
    ),
    live_on=("cpu", "cuda"),
    demonstrate=demonstrate,
)
