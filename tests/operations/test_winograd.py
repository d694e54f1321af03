"""Winograd's algorithm in NumPy: honest results of it in fp32 pass where a library may choose it, wrong ones never."""

from dataclasses import replace

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import IncorrectOutput
from gpuexplore.core.model import Case, Shape
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import open_group
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.implementation import AS_SUMMED
from gpuexplore.operations.winograd import _growth_of, _transforms, growth_in_fp32
from tests.measure.fakes import CPU, GPU, QUIET, FakeClock, FakeWork, candidate

CONV2D, FP32 = OPERATIONS["conv2d"], DTYPES["fp32"]
SHAPE = Shape.of(b=1, c=64, h=32, w=32, o=16, r=3)


def winograd(x, weights, outputs, taps=None):
    """Return the convolution of x (c, h, w) with weights (o, c, r, r) in fp32, channels added up one by one.

    `taps` is what the algorithm takes for the weights: another array where it is wrong.
    """
    made = [matrix.astype(np.float32) for matrix in _transforms(outputs)]
    output, filters, inputs = made
    pad, count = weights.shape[-1] // 2, outputs + weights.shape[-1] - 1
    rows, columns = (-(-length // outputs) * outputs for length in x.shape[1:])
    wide = np.zeros((len(x), rows + 2 * pad, columns + 2 * pad), np.float32)
    wide[:, pad : pad + x.shape[1], pad : pad + x.shape[2]] = x
    windows = np.lib.stride_tricks.sliding_window_view(wide, (count, count), axis=(1, 2))[:, ::outputs, ::outputs]
    there = np.einsum(
        "ij,ocjk,lk->cilo",
        filters,
        weights if taps is None else taps,
        filters,
        optimize=["einsum_path", (0, 1), (0, 1)],
    )
    tiles = np.einsum("ij,cyxjk,lk->cyxil", inputs, windows, inputs, optimize=["einsum_path", (0, 1), (0, 1)])
    total = np.zeros((*tiles.shape[1:], len(weights)), np.float32)
    for channel in range(len(x)):
        total += tiles[channel][..., None] * there[channel]
    back = np.einsum("mi,yxilo,nl->oymxn", output, total, output, optimize=["einsum_path", (0, 1), (0, 1)])
    whole = back.reshape(len(weights), rows, columns)
    return whole[:, : x.shape[1], : x.shape[2]]


def convolution(shape=SHAPE, seed=3):
    inputs = make_inputs(CONV2D, shape, FP32, "normal", seed=seed)
    return Reference(CONV2D, FP32, inputs, seed), *inputs


def judged(out, reference, growth, shape=SHAPE):
    return judge(out[None].astype(np.float64), reference, shape, growth)


@pytest.mark.parametrize(
    ("outputs", "rows"),
    [
        (2, [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]),
        (
            4,
            [
                [4, 0, -5, 0, 1, 0],
                [0, -4, -4, 1, 1, 0],
                [0, 4, -4, -1, 1, 0],
                [0, -2, -1, 2, 1, 0],
                [0, 2, -1, -2, 1, 0],
                [0, 4, 0, -5, 0, 1],
            ],
        ),
    ],
)
def test_transforms_are_those_of_lavin_and_gray_but_for_signs(outputs, rows):
    np.testing.assert_allclose(np.abs(_transforms(outputs)[2]), np.abs(rows))


@pytest.mark.parametrize("outputs", [2, 4])
def test_transforms_compute_a_convolution(outputs):
    output, weights, inputs = _transforms(outputs)
    generator = np.random.default_rng(1)
    taps, numbers = generator.standard_normal(3), generator.standard_normal(outputs + 2)

    np.testing.assert_allclose(output @ ((weights @ taps) * (inputs @ numbers)), np.correlate(numbers, taps))


@pytest.mark.parametrize("channels", [1, 3, 64, 300])
@pytest.mark.parametrize("outputs", [2, 4])
def test_honest_results_of_it_pass_with_room_to_spare(outputs, channels):
    shape = Shape.of(b=1, c=channels, h=33, w=30, o=16, r=3)
    reference, x, weights = convolution(shape)

    found = judged(winograd(x[0], weights, outputs), reference, _growth_of(outputs, channels), shape)

    assert found.share < 0.5


def test_honest_results_of_4_by_4_are_beyond_what_rounding_explains_of_a_direct_sum():
    reference, x, weights = convolution()

    assert not judged(winograd(x[0], weights, 4), reference, AS_SUMMED).within


def without_a_tap(x, weights):
    taps = weights.copy()
    taps[5, :, 2, 2] = 0
    return winograd(x, weights, 4, taps)


def without_one_tap_of_one_channel(x, weights):
    taps = weights.copy()
    taps[5, 7, 0, 1] = 0
    return winograd(x, weights, 4, taps)


def rounded_to_bf16(x, weights):
    bf16 = DTYPES["bf16"]
    return bf16.widen(bf16.round(winograd(x, weights, 4)))


def of_rounded_inputs(x, weights):
    tf32 = DTYPES["tf32"]
    return winograd(*(tf32.widen(tf32.round(array)).astype(np.float32) for array in (x, weights)), 4)


def with_a_tile_of_its_neighbour(x, weights):
    out = winograd(x, weights, 4)
    out[3, 8:12, 8:12] = out[3, 8:12, 12:16]
    return out


@pytest.mark.parametrize(
    "wrong",
    [
        without_a_tap,
        without_one_tap_of_one_channel,
        rounded_to_bf16,
        of_rounded_inputs,
        with_a_tile_of_its_neighbour,
    ],
)
def test_wrong_results_of_it_still_fail(wrong):
    reference, x, weights = convolution()

    assert not judged(wrong(x[0], weights), reference, _growth_of(4, SHAPE["c"])).within


@pytest.mark.parametrize(
    ("device", "dtype", "reach", "grows"),
    [
        (GPU, "fp32", 3, True),
        (CPU, "fp32", 3, False),
        (GPU, "tf32", 3, False),
        (GPU, "fp64", 3, False),
        (GPU, "fp32", 5, False),
    ],
)
def test_it_counts_only_where_cudnn_may_choose_it(device, dtype, reach, grows):
    shape = Shape.of(b=1, c=64, h=32, w=32, o=16, r=reach)

    assert (growth_in_fp32(shape, DTYPES[dtype], device) != AS_SUMMED) == grows
    assert {row.name for row in CONV2D.implementations if row.growth(shape, DTYPES[dtype], device) != AS_SUMMED} == (
        {"torch", "torch-autotune"} if grows else set()
    )


@pytest.mark.parametrize("on", [GPU, CPU])
def test_case_of_such_a_library_is_judged_with_it(on):
    case = Case("conv2d", SHAPE, "fp32", "torch", on.id)
    group = open_group([case], on, clock=FakeClock(), isolation=QUIET)
    x, weights = group.timed_reference.inputs
    made = replace(candidate(FakeWork(FakeClock(), [0.0])), case=case, out=winograd(x[0], weights, 4)[None])

    if on is GPU:
        assert checked(made, group, group.timed_reference).within
        return
    with pytest.raises(IncorrectOutput):
        checked(made, group, group.timed_reference)
