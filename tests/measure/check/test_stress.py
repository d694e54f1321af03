"""What is right where it is timed and wrong elsewhere is fragile; what is right everywhere is not, whoever wrote it."""

from types import SimpleNamespace

import numpy as np
import pytest

from gpuexplore import operations
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.errors import IncorrectOutput, Unsupported
from gpuexplore.core.model import Case, Measurement, Options, Shape
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.check.group import open_group
from gpuexplore.measure.check.stress import UNCHANGED, _cores_of, _stresses, check_often, weakness
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.operations.own_code import build_of_function
from tests.measure.fakes import CPU, QUIET, FakeClock
from tests.unchanged import heavy_with

ROWS = Shape.of(m=64, n=64)
SHAPES = {
    "softmax": ROWS,
    "layer_norm": ROWS,
    "matmul": Shape.of(m=64, k=64, n=64),
    "vector_add": Shape.of(n=4096),
    "copy": Shape.of(n=4096),
}


def stable_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_without_maximum(x):
    with np.errstate(all="ignore"):
        e = np.exp(x)
        return e / e.sum(-1, keepdims=True)


def clamped_softmax(x):
    return stable_softmax(np.clip(x, -20, 20))


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5)) * weight + bias


def variance_in_one_pass(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    variance = np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * weight + bias


def square_product(a, b):
    n = len(a)
    return a.ravel()[: n * n].reshape(n, n) @ b.ravel()[: n * n].reshape(n, n)


def aligned_sum(a, b):
    return a + b if a.ctypes.data % 16 == 0 else np.zeros_like(a)


def contiguous_sum(a, b):
    return a + b if a.flags.c_contiguous else a - b


def sum_without_nan(a, b):
    return np.nan_to_num(a + b, nan=0.0, posinf=np.inf, neginf=-np.inf)


def clipped_sum(a, b):
    return np.minimum(a + b, np.float32(1e30))


FRAGILE = [
    ("vector_add", sum_without_nan, "wrong on inputs with NaN: finite where the reference is not"),
    ("vector_add", clipped_sum, "wrong on inputs with infinity: finite where the reference is not"),
    ("softmax", softmax_without_maximum, "wrong on inputs 1,000 times as large: the output contains NaN"),
    ("softmax", clamped_softmax, "wrong on inputs 1,000 times as large: relative error"),
    ("layer_norm", variance_in_one_pass, "wrong on inputs around 1,000: relative error"),
    ("matmul", square_product, "wrong on the shape m=1,k=257,n=255: it returned the shape (1, 1)"),
    ("vector_add", aligned_sum, "wrong on arrays that start at an odd element"),
    ("vector_add", contiguous_sum, "wrong on strided views"),
]
ROBUST = [("softmax", stable_softmax), ("layer_norm", layer_norm), ("matmul", np.matmul), ("vector_add", np.add)]


def opened(name, function, monkeypatch, options=None):
    added = SimpleNamespace(build_of=lambda name: build_of_function(function, "numpy"))
    monkeypatch.setattr(operations, "additions", lambda: iter([added]))
    case = Case(name, SHAPES[name], "fp32", "numpy:planted", "cpu", options or Options())
    return case, open_group([case], CPU, clock=FakeClock(), isolation=QUIET)


@pytest.mark.parametrize(("name", "function", "found"), FRAGILE)
def test_what_is_right_where_it_is_timed_alone_is_fragile(name, function, found, monkeypatch):
    case, group = opened(name, function, monkeypatch)
    candidate = group.build(case, case.shape, group.checked_reference.inputs)

    assert check_often(candidate, group, 1e-5) is None
    assert weakness(case, group).startswith(found)


@pytest.mark.parametrize(("name", "function"), ROBUST)
def test_what_is_right_everywhere_is_not(name, function, monkeypatch):
    case, group = opened(name, function, monkeypatch)

    assert weakness(case, group) is None


def test_what_raises_beside_the_timed_shape_is_fragile_too(monkeypatch):
    def of_one_shape(a, b):
        if a.shape != (4096,):
            raise ValueError("4096 elements alone")
        return a + b

    case, group = opened("vector_add", of_one_shape, monkeypatch)

    assert weakness(case, group) == "wrong on the shape n=1: ValueError: 4096 elements alone"


def test_arrays_that_its_library_does_not_take_are_no_weakness(monkeypatch):
    def picky(a, b):
        if a.ctypes.data % 64:
            raise Unsupported("copies what it gets")
        return a + b

    case, group = opened("vector_add", picky, monkeypatch)

    assert weakness(case, group) is None


def test_a_view_that_is_returned_now_and_then_is_no_output(monkeypatch):
    last = {}

    def copied_once(a):
        if last.get("input") is not a:
            last["input"] = a
            return a.copy()
        seen = a.view()
        seen.flags.writeable = False
        return seen

    case, group = opened("copy", copied_once, monkeypatch)
    candidate = group.build(case, case.shape, group.checked_reference.inputs)

    with pytest.raises(IncorrectOutput, match="memory of its inputs"):
        check_often(candidate, group, 1e-5)


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_matrices_by_columns_are_no_weakness(monkeypatch, layout):
    case, group = opened("matmul", np.matmul, monkeypatch, Options(layout=layout))

    assert weakness(case, group) is None


def test_what_is_wrong_now_and_then_is_incorrect(monkeypatch):
    calls = []

    def every_seventh(a, b):
        calls.append(1)
        return a + b if len(calls) % 7 else a - b

    case, group = opened("vector_add", every_seventh, monkeypatch)
    candidate = group.build(case, case.shape, group.checked_reference.inputs)

    with pytest.raises(IncorrectOutput, match="relative error"):
        check_often(candidate, group, 1e-5)


@pytest.mark.parametrize(("longest_s", "flagged"), [(0.08, False), (0.04, True)])
def test_threads_of_its_own_are_told_by_the_cpu_that_others_than_the_busiest_used(monkeypatch, longest_s, flagged):
    case, group = opened("vector_add", np.add, monkeypatch, Options(threads=1))
    candidate = group.build(case, case.shape, group.checked_reference.inputs)
    runs, cpu_s = iter([{1: 0.0, 2: 0.0}, {1: longest_s, 2: 0.08 - longest_s}]), iter([1.0, 1.08])

    cores = _cores_of(candidate, 1e-2, runs=lambda: next(runs), cpu=lambda: next(cpu_s))

    assert cores == pytest.approx(0.08 / longest_s)
    measured = measurement_of(case, group, cores)
    names = [flag.name for flag in find_flags(measured)]
    assert ("extra_threads" in names) is flagged


def measurement_of(case, group, cores):
    measurement = Measurement((1e-3,) * 6, 1e-3, (1,) * 6)
    return MeasuredCase(case, measurement, group.environment, group.operation, group.dtype, cores=cores)


def test_large_values_are_smaller_in_narrow_dtypes():
    operation, dtype = operation_named("vector_add"), dtype_named("fp16")
    names = [each.name for each in _stresses(operation, Shape.of(n=100), dtype, of_a_function=True)]

    assert names[-6:] == [
        "arrays that start at an odd element",
        "strided views",
        "inputs 30 times as large",
        "inputs around 30",
        "inputs with NaN",
        "inputs with infinity",
    ]


def test_networks_have_weights_scaled_to_their_layers_and_are_tried_on_no_others():
    training = operation_named("mlp_step")
    found = list(_stresses(training, training.shape_of_size(8), dtype_named("fp32"), of_a_function=True))

    assert [each.name for each in found if each.change is not UNCHANGED] == []


BY_US = {  # implementations that are tried on every stress, by operation
    operation.name: [
        implementation
        for implementation in operation.implementations
        if implementation.backend in ("numpy", "torch") and not implementation.rung
    ]
    for operation in OPERATIONS.values()
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=heavy_with(OPERATIONS[name], *rows)) for name, rows in BY_US.items()]
)
def test_ours_are_right_on_all_of_it(name):
    operation = operation_named(name)
    shape = operation.shape_of_size(min(operation.default_sizes))
    for dtype in ("fp32", "bf16", "fp16"):
        rows = [row for row in BY_US[name] if not unsupported(operation, row, dtype_named(dtype), CPU)]
        cases = [Case(name, shape, dtype, row.name, "cpu") for row in rows]
        group = open_group(cases, CPU, clock=FakeClock(), isolation=QUIET)

        assert {case.implementation: weakness(case, group) for case in cases} == {row.name: None for row in rows}
