"""What a case would cost is known before it is started."""

import re
import sys
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import TooLarge, TooSlow
from gpuexplore.core.model import Shape
from gpuexplore.core.units import format_seconds
from gpuexplore.measure.check.group import (
    CHEAP_WORK,
    LONG_PROBE_S,
    MAX_BUDGET_MULTIPLE,
    MIN_CALLS,
    _probe_shapes,
    array_bytes,
    check_duration,
    check_memory,
    estimate_call_s,
    limit_s,
    needed_bytes,
    work,
)
from gpuexplore.measure.conditions import environment
from gpuexplore.measure.conditions.environment import free_bytes
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU, GPU, case

MATMUL, VECTOR_ADD = OPERATIONS["matmul"], OPERATIONS["vector_add"]
LARGE = Shape.of(m=4096, k=4096, n=4096)


def test_work_counts_arithmetic_and_moved_numbers():
    assert work(MATMUL, Shape.of(m=2, k=3, n=5)) == 60 + 6 + 15 + 10


def test_cheap_shapes_are_not_probed():
    assert _probe_shapes(MATMUL, Shape.of(m=64, k=64, n=64)) == []
    assert estimate_call_s(MATMUL, Shape.of(m=64, k=64, n=64), never_asked, 0.0) == 0.0


def never_asked(shape):
    raise AssertionError(f"probed {shape}")


def test_probes_grow_from_a_cheap_one_and_stay_below_the_shape():
    shapes = _probe_shapes(MATMUL, LARGE)
    works = [work(MATMUL, shape) for shape in shapes]

    assert works == sorted(works)
    assert works[0] <= CHEAP_WORK < works[1]
    assert shapes[-1] == Shape.of(m=2048, k=2048, n=2048)


def test_probes_keep_the_proportions_and_no_axis_vanishes():
    shapes = _probe_shapes(MATMUL, Shape.of(m=1, k=40000, n=20000))

    assert all(shape["m"] == 1 and shape["k"] == 2 * shape["n"] for shape in shapes)


def test_probing_stops_before_a_call_that_takes_long():
    asked = []

    def time_call(shape):
        asked.append(shape)
        return 1e-9 * work(MATMUL, shape)

    estimate_s = estimate_call_s(MATMUL, LARGE, time_call, enough_s=0.0)

    assert work(MATMUL, asked[-1]) * 1e-9 <= LONG_PROBE_S < work(MATMUL, MATMUL.halved(asked[-1])) * 64e-9
    assert estimate_s == pytest.approx(work(MATMUL, LARGE) * 1e-9)


def test_a_busy_moment_at_a_small_probe_is_corrected_by_a_larger_one():
    asked = []

    def time_call(shape):
        asked.append(shape)
        return 1e-12 * work(MATMUL, shape) + 20e-3 * (len(asked) == 1)

    assert estimate_call_s(MATMUL, Shape.of(m=512, k=512, n=512), time_call, enough_s=1.0) < 1.0
    assert len(asked) == 2


def test_probing_stops_where_the_case_is_plainly_cheap_enough():
    asked = []

    def time_call(shape):
        asked.append(shape)
        return 1e-6

    estimate_call_s(MATMUL, LARGE, time_call, enough_s=1.0)

    assert len(asked) == 1


def test_probing_ends_with_the_largest_smaller_shape():
    asked = []
    shape = Shape.of(n=2**27)

    estimate_s = estimate_call_s(VECTOR_ADD, shape, lambda smaller: asked.append(smaller) or 1e-4, enough_s=0.0)

    assert asked == _probe_shapes(VECTOR_ADD, shape)
    assert estimate_s == pytest.approx(2e-4)


def test_too_slow_names_the_estimate_the_limit_and_the_budget():
    one = case(budget_s=0.2)

    check_duration(one, limit_s(one) / MIN_CALLS)
    check_duration(case(budget_s=1.0), 2.5)
    with pytest.raises(TooSlow, match=re.escape(f"about 2.50 s and {MIN_CALLS} are needed")) as error:
        check_duration(one, 2.5)
    limit = format_seconds(MAX_BUDGET_MULTIPLE * 0.2)
    assert str(error.value).endswith(f"over the limit of {limit} ({MAX_BUDGET_MULTIPLE} × the budget of 0.2 s)")


def test_too_large_names_both_figures():
    check_memory(2**30, 2**30, GPU)
    with pytest.raises(TooLarge, match=re.escape("needs 8.00 GiB, cuda:0 has 1.00 GiB free")):
        check_memory(2**33, 2**30, GPU)
    check_memory(2**60, None, GPU)  # unknown memory sets no limit


def test_cpu_also_holds_three_float64_references_and_their_values():
    shape = Shape.of(n=1000)

    assert array_bytes(VECTOR_ADD, shape, 2) == 3000 * 2
    assert needed_bytes(VECTOR_ADD, shape, 2, "cpu") == 3000 * (2 + 3 * 2 + 3 * 8)


def test_gpu_also_holds_a_second_output():
    assert needed_bytes(VECTOR_ADD, Shape.of(n=1000), 2, "cuda") == 4000 * 2


@pytest.mark.parametrize(("size", "itemsize", "fits"), [(65536, 2, True), (47_700, 2, True), (65536, 8, False)])
def test_product_of_every_size_fits_on_80_gb_in_bf16_and_not_in_fp64(size, itemsize, fits):
    needed = needed_bytes(MATMUL, Shape.of(m=size, k=size, n=size), itemsize, "cuda")

    assert (needed <= 0.9 * 80e9) == fits


def test_gpu_keeps_a_tenth_of_what_is_free_and_unknown_stays_unknown(monkeypatch):
    monkeypatch.setattr(environment, "free_gpu_bytes", {"GPU-0": 1000}.get)

    assert free_bytes(GPU) == 900
    assert free_bytes(replace(GPU, uuid="GPU-1")) is None


def test_cpu_has_what_the_machine_has_free_now(monkeypatch):
    monkeypatch.setattr(environment, "free_host_bytes", lambda: 1000)
    assert free_bytes(CPU) == 900

    monkeypatch.setattr(environment, "free_host_bytes", lambda: None)
    assert free_bytes(CPU) is None


def test_free_memory_is_known_without_psutil_too(monkeypatch):
    with_psutil = free_bytes(CPU)
    monkeypatch.setitem(sys.modules, "psutil", None)

    assert with_psutil > 0
    assert free_bytes(CPU) > 0


class _Made(TorchDispatchMode):
    """Writes down the bytes of what torch's functions make."""

    def __init__(self):
        super().__init__()
        self.nbytes = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        self.nbytes.append(made.nbytes if isinstance(made, torch.Tensor) else 0)
        return made


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_output_is_widened_on_the_host_and_takes_nothing_more_on_its_device(dtype):
    backend, row = load_backend("torch"), DTYPES[dtype]
    out = backend.empty((8, 16), row, "cpu")
    out.fill_(3)

    with _Made() as made:
        stored = backend.stored(out, row)

    assert (row.widen(stored) == 3).all()
    assert all(nbytes <= out.nbytes for nbytes in made.nbytes)
