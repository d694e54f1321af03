"""The modes learn in turns, step by step and in random order, from the same batches, so that ratios are paired."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from time import monotonic
from typing import Any

import torch

from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import Cancelled
from gpuexplore.features.training.measure.checks import gradient_error, underflow
from gpuexplore.features.training.measure.learner import Learner
from gpuexplore.features.training.measure.network import Batches
from gpuexplore.features.training.measure.recorder import REPORT_EVERY_S, Course, Recorder
from gpuexplore.features.training.measure.setup import Setup
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.model import Device
from gpuexplore.operations.torch_steps import allow_tf32
from gpuexplore.units import format_seconds

MOST_SECONDS = 240.0  # of all modes together; then a training ends with the steps it has
COUNTINGS = 10  # of zero gradients over a training


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told how far it is, who may stop it, and what times it.

    Attributes:
        report: gets payloads.
        cancelled: polled after each step.
        time: the clock, and what keeps pages off the cores.
    """

    report: Callable[[Mapping[str, Any]], None]
    cancelled: Callable[[], bool]
    time: Timekeeper


def train(setup: Setup, device: Device, watch: Watch) -> tuple[Recorder, str | None]:
    """Train every mode of `setup` in this process; return what it was, and why it ended early if it did.

    Raises:
        Cancelled: the user asked to stop.
        GpuExploreError: gradients are wrong.
    """
    allow_tf32(dtype_named("fp32"))
    recorder = Recorder(setup, setup.modes, device, torch.get_num_threads())
    batches = Batches(setup)
    watch.report(recorder.payload(doing="checking the gradients against float64"))
    learners = {name: Learner(setup, name, device.id, clock=watch.time.clock) for name in setup.modes}
    for name, learner in learners.items():
        course = recorder.courses[name]
        course.error = gradient_error(learner, setup, batches)
        if learner.mode.dtype == "fp16":
            course.underflow = underflow(learner, setup, batches, device.id)
        _obey(watch)
    return recorder, _in_turns(setup, learners, batches, recorder=recorder, watch=watch)


def _in_turns(
    setup: Setup, learners: Mapping[str, Learner], batches: Batches, *, recorder: Recorder, watch: Watch
) -> str | None:
    random, began, reported, round_s = Random(setup.seed), monotonic(), monotonic(), 0.0
    for step in range(setup.steps):
        samples, labels = batches.of_step(step)
        with watch.time.undisturbed(round_s):
            order = random.sample(list(learners), len(learners))
            round_s = sum(recorder.courses[name].add(learners[name].step(samples, labels)) for name in order)
        _obey(watch)
        if is_counted(step, setup.steps):
            count_zeros(learners, recorder.courses, step)
        if monotonic() - reported >= REPORT_EVERY_S:
            watch.report(recorder.payload())
            reported = monotonic()
        if monotonic() - began > MOST_SECONDS:
            return f"it had taken {format_seconds(MOST_SECONDS)}"
    return None


def _obey(watch: Watch) -> None:
    if watch.cancelled():
        raise Cancelled("cancelled while it learned")


def is_counted(step: int, steps: int) -> bool:
    """Return whether zeros are counted after this step: some times over a training, the last step included."""
    return step % max(1, steps // COUNTINGS) == 0 or step == steps - 1


def count_zeros(learners: Mapping[str, Learner], courses: Mapping[str, Course], step: int) -> None:
    """Count the zeros among the gradients of a step, of each mode, outside what is timed."""
    for name, learner in learners.items():
        courses[name].zero_shares.append((step, learner.zero_share()))
