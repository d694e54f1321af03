"""Measurement of a whole experiment in this process, device by device, for `record` and the Python API."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Case, Device, Experiment, Result
from gpuexplore.hardware import device_named
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.runner import measure_group


def sweep(
    experiment: Experiment,
    devices: Sequence[Device],
    *,
    report: Callable[[Case | Result], None],
    lock: Callable[[Device], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> None:
    """Measure every case of `experiment` and report one final `Result` for each.

    Args:
        experiment: what is asked for.
        devices: those of this machine.
        report: called with cases and final results, as by `measure_group`.
        lock: returns the lock of a device, which is held while it is measured on.

    Raises:
        InvalidInput: fresh processes are asked for.
    """
    if experiment.options.repeat > 1:
        raise InvalidInput.of("repeat", experiment.options.repeat, "1: only `gpuexplore run` starts fresh processes")
    for device in [device_named(name, devices) for name in experiment.devices]:
        cases = [case for case in experiment.cases() if case.device == device.id]
        with lock(device):
            measure_group(cases, device, progress=ProgressHooks(report))
