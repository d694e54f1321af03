"""Batched products, linear layers, convolution and attention: torch counts and computes the same."""

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import conv2d, scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

import gpuexplore as gx
from gpuexplore.analysis.utilization.utilization import size_of
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Case, Shape
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.check.correctness import tolerance
from gpuexplore.measure.check.group import CHEAP_WORK, _probe_shapes, work
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS, load_build
from gpuexplore.operations.attention import attended_pairs
from gpuexplore.request import Request, from_experiment, resolve, with_defaults
from gpuexplore.shapes import parse_shape
from tests.measure.fakes import GPU

BATCHED, LINEAR, CONV2D, ATTENTION = (OPERATIONS[one] for one in ("batched_matmul", "linear", "conv2d", "attention"))
SHARED = Shape.of(outer=2, inner=3, m=5, k=7, n=11, right=1)
ONE_EACH = Shape.of(outer=2, inner=3, m=5, k=7, n=11, right=6)
CAUSAL = Shape.of(b=2, h=3, s=5, d=7, causal=1)
IN_TORCH = [
    pytest.param(BATCHED, SHARED, torch.matmul, id="shared"),
    pytest.param(BATCHED, ONE_EACH, torch.matmul, id="one-each"),
    pytest.param(LINEAR, Shape.of(b=5, d=7, k=3), torch.matmul, id="linear"),
    pytest.param(
        CONV2D, Shape.of(b=2, c=3, h=9, w=5, o=4, r=3), lambda x, w: conv2d(x, w, padding=1), id="convolution"
    ),
    pytest.param(
        CONV2D, Shape.of(b=1, c=2, h=4, w=3, o=3, r=5), lambda x, w: conv2d(x, w, padding=2), id="wide-kernel"
    ),
    pytest.param(ATTENTION, Shape.of(b=2, h=3, s=5, d=7), scaled_dot_product_attention, id="attention"),
]


def inputs_of(operation, shape):
    return make_inputs(operation, shape, DTYPES["fp64"], "normal")


@pytest.mark.parametrize(("operation", "shape", "in_torch"), IN_TORCH)
def test_torch_computes_the_reference_and_counts_the_same_flops(operation, shape, in_torch):
    inputs = inputs_of(operation, shape)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        right = in_torch(*map(torch.from_numpy, inputs)).numpy()

    assert operation.flop_count(shape) == counter.get_total_flops()
    assert operation.output(shape) == right.shape
    np.testing.assert_allclose(operation.reference(*inputs), right, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("operation", "shape", "problem"),
    [
        ("batched_matmul", "outer=2,inner=3,m=1,k=1,n=1,right=5", "right is 1 .* or outer × inner = 6"),
        ("conv2d", "b=1,c=1,h=8,w=8,o=1,r=2", "r is odd"),
    ],
)
def test_shape_without_a_meaning_says_why(operation, shape, problem):
    with pytest.raises(InvalidInput, match=problem):
        resolve(Request(operation, shapes=shape), ["cpu"])


@pytest.mark.parametrize("operation", [BATCHED, LINEAR, CONV2D, ATTENTION], ids=lambda one: one.name)
def test_size_is_read_back_from_the_shape_it_stands_for(operation):
    sizes = ",".join(map(str, operation.default_sizes))
    experiment = resolve(Request(operation.name, sizes=sizes), ["cpu"])

    assert from_experiment(experiment).sizes == sizes
    assert [size_of(Case(operation.name, shape, "fp32", "numpy", "cpu")) for shape in experiment.shapes] == list(
        operation.default_sizes
    )
    assert size_of(Case(operation.name, operation.presets[0].shape, "fp32", "numpy", "cpu")) in (None, 8192)


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (BATCHED, Shape.of(outer=5, inner=77, m=65, k=300, n=50, right=5 * 77)),
        (BATCHED, Shape.of(outer=5, inner=77, m=650, k=300, n=50, right=1)),
        (CONV2D, Shape.of(b=3, c=33, h=224, w=224, o=64, r=7)),
    ],
)
def test_smaller_shapes_for_the_cost_guard_have_a_meaning_too(operation, shape):
    shapes = _probe_shapes(operation, shape)

    assert work(operation, shapes[0]) <= CHEAP_WORK
    assert all(operation.problem(one) is None for one in shapes)


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (BATCHED, Shape.of(outer=1, inner=3, m=500, k=600, n=400, right=3)),
        (BATCHED, Shape.of(outer=1, inner=3, m=500, k=600, n=400, right=1)),
        (LINEAR, Shape.of(b=900, d=700, k=500)),
        (CONV2D, Shape.of(b=2, c=40, h=70, w=300, o=40, r=3)),
        (ATTENTION, Shape.of(b=1, h=2, s=1500, d=80)),
        (ATTENTION.at(CAUSAL), Shape.of(b=1, h=2, s=1500, d=80, causal=1)),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_parts_that_are_checked_of_a_large_output_are_right_where_they_lie(monkeypatch, operation, shape):
    for module in ("sampling", "attention", "conv2d"):
        monkeypatch.setattr(f"gpuexplore.operations.{module}.CHECK_WHOLE_UP_TO", 2**20)
    inputs = inputs_of(operation, shape)
    whole = operation.reference(*inputs)
    parts = Reference(operation, DTYPES["fp64"], inputs).parts

    assert sum(right.size for _, right in parts) < whole.size
    for index, right in parts:
        np.testing.assert_allclose(whole[index], right, rtol=0, atol=1e-10)


def test_strips_of_a_large_image_are_put_together(monkeypatch):
    shape = Shape.of(b=2, c=2, h=13, w=6, o=3, r=5)
    inputs = inputs_of(CONV2D, shape)
    at_once = CONV2D.reference(*inputs)
    monkeypatch.setattr("gpuexplore.operations.conv2d.PIXELS_AT_A_TIME", 24)

    np.testing.assert_allclose(CONV2D.reference(*inputs), at_once, rtol=0, atol=1e-12)


def test_numpy_convolves_and_attends_in_strips_too(monkeypatch):
    monkeypatch.setattr("gpuexplore.operations.conv2d.numpy.PIXELS", 24)
    monkeypatch.setattr("gpuexplore.operations.attention.numpy.ROWS", 4)
    for operation, shape in (
        (CONV2D, Shape.of(b=2, c=2, h=13, w=6, o=3, r=5)),
        (ATTENTION, Shape.of(b=2, h=2, s=13, d=6)),
        (ATTENTION, Shape.of(b=2, h=2, s=13, d=6, causal=1)),
    ):
        inputs, out = inputs_of(operation, shape), np.full(operation.output(shape), np.nan)
        flags = dict.fromkeys(operation.flags_of(shape), True)
        load_build(operation, operation.implementations[0])(inputs, out, DTYPES["fp64"], **flags)()

        np.testing.assert_allclose(out, operation.at(shape).reference(*inputs), rtol=0, atol=1e-12)


def test_autotuned_convolution_is_offered_where_there_is_cudnn_only():
    assert unsupported(CONV2D, CONV2D.implementation_named("torch-autotune"), DTYPES["fp32"], GPU) is None
    assert "torch-autotune" not in with_defaults(Request("conv2d"), ["cpu"]).implementations
    assert "torch-autotune" in with_defaults(Request("conv2d"), ["cpu", "cuda:0"]).implementations


@pytest.mark.parametrize("autotune", [False, True])
def test_cudnn_gets_its_switches_in_the_call_and_tf32_only_when_asked_for(monkeypatch, autotune):
    from gpuexplore.operations.conv2d.torch import cudnn

    given = []
    monkeypatch.setattr(torch, "cudnn_convolution", lambda *inputs, **switches: given.append(switches))
    inputs, out = (torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)), torch.empty(1, 1, 4, 4)
    for dtype in ("fp32", "tf32"):
        cudnn(inputs, out, DTYPES[dtype], autotune=autotune)()

    assert [one["allow_tf32"] for one in given] == [False, True]
    assert all(one["benchmark"] is autotune and one["padding"] == (1, 1) and one["out"] is out for one in given)


def test_attention_in_16_bits_is_held_to_the_rounding_of_its_output():
    """The scores are fp32 in every implementation of ours: the length of the sums hardly matters."""
    allowed = tolerance(ATTENTION, Shape.of(b=1, h=1, s=1024, d=64), DTYPES["bf16"])

    assert allowed == pytest.approx(2 * 2**-8 * 2**0.5, rel=2e-3)  # the weights are rounded, and what they sum


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 8), (8, 3), (1, 7), (7, 1)])
def test_pairs_of_a_causal_mask_are_those_of_a_triangle(queries, keys):
    whole = np.ones((queries, keys), dtype=bool)

    assert attended_pairs(queries, keys, causal=False) == queries * keys
    assert attended_pairs(queries, keys, causal=True) == np.tril(whole).sum()
    assert attended_pairs(queries, keys, causal=True, bottom_right=True) == np.tril(whole, keys - queries).sum()
    for before in (0, 1, 9):
        banded = np.triu(np.tril(whole, 2), -before)
        last = np.triu(np.tril(whole, keys - queries), keys - queries - before)
        assert attended_pairs(queries, keys, causal=False, window=(before, 2)) == banded.sum()
        assert attended_pairs(queries, keys, causal=True, bottom_right=True, window=(before, None)) == last.sum()


def test_a_causal_mask_is_torchs_and_leaves_the_flops_of_a_triangle():
    inputs = inputs_of(ATTENTION, CAUSAL)
    right = scaled_dot_product_attention(*map(torch.from_numpy, inputs), is_causal=True).numpy()

    np.testing.assert_allclose(ATTENTION.at(CAUSAL).reference(*inputs), right, rtol=0, atol=1e-12)
    assert ATTENTION.flop_count(CAUSAL) == 4 * 2 * 3 * 7 * 15
    assert ATTENTION.byte_count(CAUSAL, DTYPES["fp32"]) == 4 * 4 * 2 * 3 * 5 * 7
    assert ATTENTION.at(Shape.of(b=2, h=3, s=5, d=7)) is ATTENTION


def test_a_flag_of_zero_is_the_shape_without_it():
    assert parse_shape("b=2,h=3,s=5,d=7,causal=0", ATTENTION) == Shape.of(b=2, h=3, s=5, d=7)
    assert parse_shape("causal=1,b=2,h=3,s=5,d=7", ATTENTION) == parse_shape(str(CAUSAL), ATTENTION) == CAUSAL
    with pytest.raises(InvalidInput, match="causal of attention '2': expected 0 and 1"):
        parse_shape("b=2,h=3,s=5,d=7,causal=2", ATTENTION)


def test_a_causal_mask_is_measured_where_an_implementation_has_code_for_it():
    (result,) = gx.run("attention", shapes=str(CAUSAL), dtypes="bf16", implementations="torch", devices="cpu").results

    assert (result.status, result.reason) == ("ok", None)
    kernel = ATTENTION.implementation_named("numba-cuda")
    assert kernel.lacks_flags(ATTENTION.flags_of(CAUSAL)) == "numba-cuda has no code for causal=1"
