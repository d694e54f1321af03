"""An output that torch's functions allocate anew on each call: what they leave unwritten shows all the same."""

from weakref import ref

import pytest
import torch

from gpuexplore.backends import torch as backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import IncorrectOutput
from gpuexplore.core.model import Case, Shape
from gpuexplore.measure.candidates import candidate as candidates
from gpuexplore.measure.check.group import open_group
from gpuexplore.measure.check.spot_checks import check_single_calls, checked
from tests.measure.fakes import CPU, QUIET, FakeClock

LENGTH = 1000
CASE = Case("vector_add", Shape.of(n=LENGTH), "fp32", "torch", "cpu")


def allocating(inputs, out, dtype):
    """Write all of a fresh result."""
    return lambda: backend.take_over(out, torch.add(*inputs, out=torch.empty_like(out)))


def allocating_half(inputs, out, dtype):
    """Write the first half of a fresh result."""
    a, b = inputs
    half = len(out) // 2

    def run():
        result = torch.empty_like(a)
        torch.add(a[:half], b[:half], out=result[:half])
        backend.take_over(out, result)

    return run


class Allocator:
    """Three blocks of memory, handed out as torch's allocator does it: what is free goes out again, as it was left."""

    def __init__(self):
        self.blocks = [torch.zeros(LENGTH) for _ in range(3)]
        self.out, self.held = None, []

    def empty_like(self, array):
        used = {self.out.data_ptr(), *(ptr for handed, ptr in self.held if handed() is not None)}
        block = next((block for block in self.blocks if block.data_ptr() not in used), None)
        handed = torch.zeros(LENGTH) if block is None else block.view(-1)
        self.held.append((ref(handed), handed.data_ptr()))
        return handed


@pytest.fixture
def allocator(monkeypatch):
    found = Allocator()
    monkeypatch.setattr(torch, "empty_like", found.empty_like)
    return found


def built(monkeypatch, build, allocator):
    monkeypatch.setattr(candidates, "load_build", lambda *_: build)
    group = open_group([CASE], CPU, clock=FakeClock(), isolation=QUIET)
    made = group.build(CASE, CASE.shape, group.timed_reference.inputs)
    allocator.out = made.out
    made.run()
    return made, group


def call_neighbour(made, allocator):
    """Leave right results in memory that is free again, as an implementation does that is measured in turns."""
    for block in allocator.blocks:
        torch.add(*made.inputs, out=block)


def test_memory_that_is_free_holds_a_right_result_without_poison(monkeypatch, allocator):
    made, _ = built(monkeypatch, allocating_half, allocator)
    call_neighbour(made, allocator)

    made.run()

    assert torch.equal(made.out, torch.add(*made.inputs))


def test_half_of_a_fresh_result_is_not_taken_for_a_whole_one(monkeypatch, allocator):
    made, _ = built(monkeypatch, allocating_half, allocator)
    call_neighbour(made, allocator)

    made.poison()
    made.run()

    assert torch.isnan(made.out).sum() == LENGTH // 2


def test_honest_result_that_is_fresh_on_each_call_passes_every_check(monkeypatch, allocator):
    made, group = built(monkeypatch, allocating, allocator)
    call_neighbour(made, allocator)

    made.poison()
    made.run()

    assert checked(made, group, group.timed_reference).within
    check_single_calls(made, group)


def test_half_of_one_is_incorrect_where_free_memory_holds_the_other_half(monkeypatch, allocator):
    made, group = built(monkeypatch, allocating_half, allocator)
    call_neighbour(made, allocator)

    made.poison()
    made.run()

    with pytest.raises(IncorrectOutput, match="the output contains NaN"):
        checked(made, group, group.timed_reference)


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16"])
def test_output_that_stays_where_it_is_costs_no_memory_to_poison(monkeypatch, dtype):
    out = backend.empty((8, 8), DTYPES[dtype], "cpu")
    monkeypatch.setattr(torch, "empty_like", None)

    backend.poison(out)

    assert torch.isnan(out).all()
