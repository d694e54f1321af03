"""A whole experiment in one process: group by group, small shapes first."""

from contextlib import contextmanager

import pytest

from gpuexplore.errors import InvalidInput
from gpuexplore.measure import sweep as module
from gpuexplore.measure.check.group import groups_of
from gpuexplore.measure.sweep import sweep
from gpuexplore.model import Experiment, Options, Shape
from tests.measure.fakes import CPU, GPU

SHAPES = (Shape.of(n=1), Shape.of(n=2))
EXPERIMENT = Experiment("vector_add", SHAPES, ("fp32", "bf16"), ("numpy", "torch"), ("cpu", "cuda:0"), Options())


def test_groups_hold_what_differs_in_the_implementation_only():
    groups = groups_of(EXPERIMENT.cases())

    assert len(groups) == 8
    assert all(len({case.group for case in group}) == 1 for group in groups)
    assert all([case.implementation for case in group] == ["numpy", "torch"] for group in groups)
    assert [case for group in groups for case in group] == list(EXPERIMENT.cases())


def test_every_group_is_measured_on_its_device_in_order(monkeypatch):
    measured = []
    monkeypatch.setattr(
        module, "measure_cases", lambda group, device, **options: measured.append((group, device, options))
    )

    sweep(EXPERIMENT, [CPU, GPU], report=print)

    assert [group for group, _, _ in measured] == groups_of(EXPERIMENT.cases())
    assert all(group[0].device == device.id for group, device, _ in measured)
    assert all(options == {"report": print} for _, _, options in measured)


def test_device_is_held_while_a_group_is_measured_on_it_and_no_longer(monkeypatch):
    log = []
    monkeypatch.setattr(module, "measure_cases", lambda group, device, **options: log.append(device.id))

    @contextmanager
    def turn(device):
        log.append(f"take {device.id}")
        yield
        log.append(f"give {device.id}")

    sweep(EXPERIMENT, [CPU, GPU], report=print, turn=turn)

    assert log[:6] == ["take cpu", "cpu", "give cpu"] * 2
    assert len(log) == 3 * len(groups_of(EXPERIMENT.cases()))


def test_device_that_is_not_here_is_named():
    with pytest.raises(InvalidInput, match="device 'cuda:0': accepted are cpu"):
        sweep(Experiment("vector_add", SHAPES, ("fp32",), ("torch",), ("cuda:0",)), [CPU], report=print)
