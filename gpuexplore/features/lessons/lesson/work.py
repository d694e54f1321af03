"""What a step measures: experiments and activities for the queue; everything else is computed at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.activity import Activity
from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.errors import InvalidInput
from gpuexplore.features.lessons.lesson.blocks import MEASURED, Mistake, Run, Tensor, Train
from gpuexplore.features.lessons.lesson.format import Step
from gpuexplore.features.lessons.lesson.tensor_block import read_of
from gpuexplore.features.lessons.lesson.training import training_of
from gpuexplore.features.mistakes.catalog import EXPECTED_S, activity_of
from gpuexplore.model import Device, Experiment
from gpuexplore.request import Request, resolve

GPU = "gpu"  # what a lesson calls the first GPU there is, here or in a recording
Work = Experiment | Activity


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work of a step.

    Attributes:
        block: that asks for it.
        work: None where no device here can do it: then others' results stand for it.
        seconds: it will take about.
    """

    block: Run | Mistake | Tensor | Train
    work: Work | None
    seconds: float = 0.0


def tasks_of(step: Step, devices: Sequence[Device]) -> tuple[Task, ...]:
    """Return what a step measures on a machine with `devices`.

    Raises:
        InvalidInput: a block asks for what cannot be measured; says what is accepted.
    """
    asked = [block for block in step.of(*MEASURED, Tensor) if not isinstance(block, Tensor) or block.read]
    return tuple(_task(block, devices) for block in asked)


def request_of(block: Run, device_id: str) -> Request:
    """Return the request of a block, on one device."""
    given = {"sizes": block.size, "shapes": block.shape, "implementations": block.impl, "cache": block.cache}
    options = {"data": block.data, "threads": block.threads} | ({"budget": block.budget} if block.budget else {})
    return Request(operation=block.operation, dtypes=block.dtype, devices=device_id, **given, **options)


def device_of(block: Run, devices: Sequence[Device]) -> Device | None:
    """Return the device that a block means; None for a GPU where there is none.

    Raises:
        InvalidInput: the block names another one.
    """
    if block.device == GPU:
        return next((device for device in devices if device.kind == "cuda"), None)
    for device in devices:
        if device.id.rpartition("/")[2] == block.device:
            return device
    raise InvalidInput.of("device", block.device, (*(device.id for device in devices), GPU))


def _task(block: Run | Mistake | Tensor | Train, devices: Sequence[Device]) -> Task:
    if isinstance(block, Train):
        work = training_of(block, devices)
        return Task(block, work, work.expected_s if work else 0.0)
    if isinstance(block, Mistake):
        return Task(block, activity_of(block.mistake), EXPECTED_S)
    if isinstance(block, Tensor):
        asked = read_of(block, devices[0].id)
        return Task(block, asked, asked.expected_s)
    device = device_of(block, devices)
    if device is None:
        return Task(block, None)
    experiment = resolve(request_of(block, device.id), [device.id for device in devices])
    check_limits(experiment, [device])
    return Task(block, experiment, estimate(experiment, [device]).seconds)
