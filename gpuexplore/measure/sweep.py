"""A whole experiment in this process, group by group: what `record` and the Python API use."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from gpuexplore.devices import device_named
from gpuexplore.errors import InvalidInput
from gpuexplore.measure.check.group import groups_of
from gpuexplore.measure.runner import Report, measure_cases
from gpuexplore.model import Device, Experiment


def sweep(
    experiment: Experiment,
    devices: Sequence[Device],
    *,
    report: Report,
    turn: Callable[[Device], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> None:
    """Measure every case of `experiment` and report one `Result` for each, small shapes first.

    Args:
        experiment: what is asked for.
        devices: those of this machine.
        report: called with cases and results, as by `measure_cases`.
        turn: returns the lock of a device, which is held while a group is measured on it.

    Raises:
        InvalidInput: fresh processes are asked for.
    """
    if experiment.options.repeat > 1:
        raise InvalidInput.of("repeat", experiment.options.repeat, "1 here; `gpuexplore run` starts fresh processes")
    for group in groups_of(experiment.cases()):
        device = device_named(group[0].device, devices)
        with turn(device):
            measure_cases(group, device, report=report)
