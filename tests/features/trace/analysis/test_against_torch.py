"""Traces that are taken now, against what the torch that took them says of the same run."""

import pytest
import torch
import torch.utils.flop_counter
from torch.profiler import ProfilerActivity, profile, record_function

from gpuexplore.features.trace.analysis.events import read_trace
from gpuexplore.features.trace.analysis.table import table_of, traced_on
from tests.features.trace.analysis.encoder_layer import exported, packed, profiled, self_cpu_us

pytestmark = pytest.mark.long
TOLERANCE = 0.02


def told_by(trace):
    read = read_trace("t", packed(trace))
    return table_of(read, traced_on(read))


def by_name(table):
    found = {}
    for row in table.rows:
        found[row.operation] = found.get(row.operation, 0.0) + row.self_cpu_s * 1e6
    return found


@pytest.mark.parametrize("has_shapes", [True, False])
def test_self_times_are_those_of_key_averages(has_shapes):
    prof = profiled(record_shapes=has_shapes)
    found, said = told_by(exported(prof)), self_cpu_us(prof)

    assert by_name(found) == pytest.approx(said, rel=TOLERANCE, abs=0.01)
    assert found.total_s * 1e6 == pytest.approx(sum(said.values()), rel=TOLERANCE)
    assert found.has_shapes == has_shapes


@pytest.mark.parametrize("with_stack", [False, True])
def test_annotations_steps_and_stacks_change_nothing(with_stack):
    model, x = torch.nn.Conv2d(3, 8, 3, padding=1), torch.randn(2, 3, 16, 16)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=with_stack) as prof:
        for _ in range(2):
            with record_function("forward and backward"):
                model(x).sum().backward()
            prof.step()
    found = by_name(told_by(exported(prof)))
    said = self_cpu_us(prof)
    compared = [name for name in found if not with_stack or name.startswith("aten::")]  # torch counts Python as well

    assert "forward and backward" in found
    assert {name: found[name] for name in compared} == pytest.approx(
        {name: said[name] for name in compared}, rel=TOLERANCE, abs=0.01
    )
    assert with_stack or found.keys() == said.keys()


def test_flops_of_a_step_are_those_of_torchs_counter():
    counter = torch.utils.flop_counter.FlopCounterMode(display=False)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.Flatten(), torch.nn.Linear(8 * 7 * 7, 5))
    x = torch.randn(2, 3, 16, 16)
    with counter:
        model(x).sum().backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        model(x).sum().backward()
    found = told_by(exported(prof))

    assert sum(row.calls * (row.flop_count or 0) for row in found.rows) == counter.get_total_flops()
