"""A whole experiment in one process: device by device."""

from contextlib import contextmanager

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Experiment, Measurement, Options, Result, Shape, Status
from gpuexplore.measure import runner
from gpuexplore.measure.check.group import groups_of
from gpuexplore.measure.runner import sweep
from tests.measure.fakes import CPU, GPU

SHAPES = (Shape.of(n=1), Shape.of(n=2))
EXPERIMENT = Experiment("vector_add", SHAPES, ("fp32", "bf16"), ("numpy", "torch"), ("cpu", "cuda:0"), Options())


def test_groups_hold_what_differs_in_the_implementation_only():
    groups = groups_of(EXPERIMENT.cases())

    assert len(groups) == 8
    assert all(len({case.group for case in group}) == 1 for group in groups)
    assert all([case.implementation for case in group] == ["numpy", "torch"] for group in groups)
    assert [case for group in groups for case in group] == list(EXPERIMENT.cases())


def test_all_cases_of_a_device_are_measured_together_and_final_results_alone_are_reported(monkeypatch):
    measured, reported = [], []

    def measure_cases(cases, device, *, progress, **_):
        measured.append((cases, device))
        progress.report(cases[0])
        for provisional in (True, False):
            progress.report(Result(cases[0], Status.OK, measurement=Measurement((1.0,), 2.0), provisional=provisional))

    monkeypatch.setattr(runner, "measure_cases", measure_cases)

    sweep(EXPERIMENT, [CPU, GPU], report=reported.append)

    assert [device for _, device in measured] == [CPU, GPU]
    assert all(len(cases) == 8 and {case.device for case in cases} == {device.id} for cases, device in measured)
    assert [event.provisional for event in reported if isinstance(event, Result)] == [False, False]
    assert len(reported) == 4


def test_device_is_held_while_it_is_measured_on_and_no_longer(monkeypatch):
    log = []
    monkeypatch.setattr(runner, "measure_cases", lambda cases, device, **options: log.append(device.id))

    @contextmanager
    def lock(device):
        log.append(f"take {device.id}")
        yield
        log.append(f"give {device.id}")

    sweep(EXPERIMENT, [CPU, GPU], report=print, lock=lock)

    assert log == ["take cpu", "cpu", "give cpu", "take cuda:0", "cuda:0", "give cuda:0"]


def test_device_that_is_not_here_is_named():
    with pytest.raises(InvalidInput, match="device 'cuda:0': expected cpu"):
        sweep(Experiment("vector_add", SHAPES, ("fp32",), ("torch",), ("cuda:0",)), [CPU], report=print)
