"""What is special about the operations that memory decides: their costs, their stability, a copy without FLOPs."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import gpuexplore.charts as chart
from gpuexplore.analysis.run.analyze import _intensity
from gpuexplore.analysis.utilization.utilization import bytes_per_s
from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Peak, Shape
from gpuexplore.hardware import CpuLoss
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.kernels.ptx import Grid, parse, run
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.operations import OPERATIONS, load_build
from gpuexplore.operations.kernel_targets import compile_for
from gpuexplore.request import Request, resolve
from tests.analysis.made import alone, analyzed, ok
from tests.analysis.made import case as made_case
from tests.charts.test_charts import points_of
from tests.measure.fakes import CPU as MADE_UP_CPU
from tests.measure.fakes import case, environment, measurement

CPU = cpu_device()
ALL_CHARTS = (chart.time, chart.speedup, partial(chart.share, by_memory=False), chart.bandwidth, chart.throughput)
LARGE = Shape.of(n=10**6)
MEMORY_OPERATIONS = ("triad", "copy", "reduce_sum", "softmax", "layer_norm")


def running_here(name):
    """Return every implementation and dtype of an operation that run on this CPU without a compiler of their own."""
    operation = OPERATIONS[name]
    return [
        pytest.param(implementation, dtype, id=f"{implementation.name}-{dtype.name}")
        for implementation in operation.implementations
        for dtype in DTYPES.values()
        if not implementation.optional and unsupported(operation, implementation, dtype, CPU) is None
    ]


def computed(name, implementation, dtype, *values):
    """Return what an implementation makes of `values`, and the right answer for these as the dtype rounds them."""
    operation, backend = OPERATIONS[name], load_backend(implementation.backend)
    stored = [dtype.round(np.asarray(value, np.float64)) for value in values]
    out = backend.empty(stored[0].shape, dtype, "cpu")
    backend.poison(out)
    backend.set_threads(2)
    load_build(operation, implementation)(tuple(backend.to_device(one, dtype, "cpu") for one in stored), out, dtype)()
    return dtype.widen(backend.stored(out, dtype)), operation.reference(*map(dtype.widen, stored))


@pytest.mark.parametrize(("implementation", "dtype"), running_here("softmax"))
def test_softmax_of_large_values_does_not_overflow(implementation, dtype):
    shares, right = computed("softmax", implementation, dtype, [[1e4, 1e4, -1e4], [-1e4, -1e4 - 64, 0.0]])

    np.testing.assert_allclose(shares, right, atol=dtype.unit_roundoff)
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], atol=dtype.unit_roundoff)


@pytest.mark.parametrize(("implementation", "dtype"), running_here("softmax"))
def test_softmax_is_exact_over_the_range_in_which_exponentials_count(implementation, dtype):
    shares, right = computed("softmax", implementation, dtype, [np.linspace(-80, 0, 321)])

    normal = right >= np.finfo(np.float16 if dtype.name == "fp16" else np.float32).tiny
    np.testing.assert_allclose(shares[normal], right[normal], rtol=16 * dtype.unit_roundoff)


@pytest.mark.parametrize(("implementation", "dtype"), running_here("layer_norm"))
def test_layer_norm_of_a_constant_row_is_the_bias(implementation, dtype):
    bias = np.linspace(-2, 2, 64)
    normalised, _ = computed("layer_norm", implementation, dtype, np.full((3, 64), 3.0), np.full(64, 2.0), bias)

    np.testing.assert_array_equal(normalised, np.tile(dtype.widen(dtype.round(bias)), (3, 1)))


@pytest.mark.parametrize(("implementation", "dtype"), running_here("layer_norm"))
def test_layer_norm_of_rows_far_from_zero_keeps_their_variance(implementation, dtype):
    x = 100 + np.random.default_rng(1).standard_normal((2, 512)) * 8
    normalised, right = computed("layer_norm", implementation, dtype, x, np.ones(512), np.zeros(512))

    assert np.linalg.norm(normalised - right) / np.linalg.norm(right) < 64 * max(dtype.unit_roundoff, 2.0**-24)


@pytest.mark.parametrize("name", MEMORY_OPERATIONS)
def test_its_intensity_is_below_one_and_a_half(name):
    operation = OPERATIONS[name]
    shape = operation.shape_of_size(operation.default_sizes[-1])

    assert operation.flop_count(shape) <= 1.5 * operation.byte_count(shape, DTYPES["fp32"])
    assert operation.unsupported(DTYPES["tf32"]) == f"tf32 exists only inside matrix units, but {name} is not a matmul"


@pytest.mark.parametrize("name", ["matmul", "vector_add", "multiply", "triad", "reduce_sum", "softmax", "layer_norm"])
def test_optional_libraries_are_measured_when_they_are_asked_for_and_not_by_default(name):
    extras = [implementation.name for implementation in OPERATIONS[name].implementations if implementation.optional]
    usual = resolve(Request(operation=name), ["cpu", "cuda:0"])
    asked = resolve(Request(operation=name, implementations=",".join(extras)), ["cpu", "cuda:0"])

    assert extras
    assert not set(extras) & set(usual.implementations)
    assert list(asked.implementations) == extras


def copied(median_s=1e-3, **about):
    return ok(median_s, operation="copy", shape=LARGE, **about)


def test_a_copy_has_no_intensity_and_is_bound_by_memory():
    assert _intensity(made_case(operation="copy", shape=LARGE)) == 0
    assert alone(copied()).bound == "memory"
    assert alone(copied(spec={"peaks": ()})).bound == "memory"
    assert alone(copied(spec={"cache_bytes": 10**9})).bound == "cache"
    assert alone(copied(spec={"bandwidth": None})).bound is None


def test_the_headline_of_a_copy_tells_its_memory_rate():
    summary = analyzed(copied(), copied(2e-3, implementation="numpy")).summary

    assert summary.headline == "At n = 1,000,000, torch in fp32 is the fastest: 1.00 ms, 8.00 GB/s."
    assert "8.0 % of the memory bandwidth" in " ".join(summary.details)


@pytest.mark.parametrize("spec", [{"peaks": ()}, {"bandwidth": None}, {"peaks": (), "bandwidth": None}])
def test_no_peak_is_asked_for_where_there_are_no_flops(spec):
    assert "enter one" not in str(analyzed(copied(spec=spec)).summary)


@pytest.mark.parametrize("draw", ALL_CHARTS)
def test_every_chart_of_a_copy_can_be_drawn(draw):
    assert draw(analyzed(copied(), copied(2e-3, implementation="numpy"))).to_dict()["description"]


def test_the_share_of_a_copy_is_of_the_bandwidth_and_there_is_none_of_a_peak():
    analysis = analyzed(copied(), copied(2e-3, implementation="numpy"))

    assert chart.has_share(analysis)
    assert [point["value"] for point in points_of(chart.share(analysis))] == pytest.approx([0.08, 0.04])
    left_out = chart.share_left_out(analysis, by_memory=False)
    assert left_out == "2 of 2 cases are not drawn: 2 without FLOPs."


def test_a_copy_is_never_emulated_nor_over_a_peak():
    device = replace(MADE_UP_CPU, peaks=(Peak("fp16", "vector", 1.0, "datasheet", "a leaflet"),))
    asked = case("torch", operation="copy", dtype="fp16", shape=LARGE)
    measured = MeasuredCase(
        asked, measurement(), environment(device), OPERATIONS["copy"], DTYPES["fp16"], losses=(CpuLoss(0.0),)
    )

    assert [flag.name for flag in find_flags(measured)] == ["warm"]
    assert bytes_per_s(copied(dtype="fp16")) == pytest.approx(4e9)


@pytest.mark.parametrize("name", ["matmul", "vector_add", "reduce_sum"])
def test_cupy_is_called_as_numpy_would_be(monkeypatch, name):
    """CuPy speaks NumPy's interface, so NumPy instead shows the calls: no GPU is needed for that."""
    operation, dtype = OPERATIONS[name], DTYPES["fp32"]
    implementation = operation.implementation_named("cupy")
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.delitem(sys.modules, f"gpuexplore.operations.{name}.cupy", raising=False)
    shape = operation.shape_of_size(5)
    inputs = make_inputs(operation, shape, dtype, "normal")
    out = np.full(operation.output(shape), np.nan, np.float32)

    load_build(operation, implementation)(inputs, out, dtype)()
    sys.modules.pop(f"gpuexplore.operations.{name}.cupy", None)

    np.testing.assert_allclose(out, operation.reference(*map(dtype.widen, inputs)), rtol=1e-5)


@pytest.mark.parametrize("name", ["copy", "triad"])
def test_a_grid_smaller_than_the_vector_still_covers_it(name):
    pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    operation = OPERATIONS[name]
    kernel = operation.implementation_named("numba-cuda")
    ptx = compile_for(operation, kernel, DTYPES["fp64"], (64,), "8.0").ptx
    inputs = [np.arange(1.0, 1030.0), np.full(1029, 2.0)][: 2 if name == "triad" else 1]

    report = run(parse(ptx), Grid((2, 1, 1), (64, 1, 1)), [*inputs, np.full(1029, np.nan)])

    assert report.faults == ()
    np.testing.assert_array_equal(report.arrays[-1], operation.reference(*inputs))
    assert kernel.geometry.launch((2**31,)).blocks == 4096
