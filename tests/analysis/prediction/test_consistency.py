"""Predictions of one call in each kind of calls, at each size, on many GPUs: consistent with one another."""

from itertools import pairwise

import pytest

from gpuexplore.analysis.prediction import Conditions, predict_each
from gpuexplore.core.model import Case, Shape
from gpuexplore.hardware import ACCELERATORS, table_device
from gpuexplore.operations import OPERATIONS
from tests.analysis.made import calibration

GPUS = (*(row.key for row in ACCELERATORS[::5]), "h100-sxm5-80gb", "t4", "mi100", "rtx-3090")
SIZES = (1, 64, 512, 4096)  # whole vectors but for the first, tiny to huge
PLAUSIBLE_S = (2e-6, 20e-6)  # that a single call takes longer than a queued one: a launch, and the wait for it
LARGE = {"vector_add": 10**8}
SLOPE = 0.9  # of a time at a smaller size, as measurements near each of both correct it


def times(operation, shapes, dtype, calls="queued", gpus=GPUS):
    """Return the predicted seconds of each shape on each GPU: a list for a GPU that computes it."""
    library = OPERATIONS[operation].vendor_library.name
    asked = [(Case(operation, shape, dtype, library, gpu), table_device(gpu)) for gpu in gpus for shape in shapes]
    found = [each.time_s for each in predict_each(asked, calibration(), Conditions(calls))]
    rows = {gpu: found[at * len(shapes) : (at + 1) * len(shapes)] for at, gpu in enumerate(gpus)}
    return {gpu: row for gpu, row in rows.items() if None not in row}


def sizes_of(operation):
    shapes = map(operation.shape_of_size, SIZES)
    return [shape for shape in shapes if all(length <= operation.limits[axis] for axis, length in shape.axes)]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda one: one.name)
def test_a_single_call_takes_a_launch_more_than_a_queued_one_and_that_more_than_in_a_graph(operation, dtype):
    kinds = ("graph", "queued", "single")
    graph, queued, single = (times(operation.name, sizes_of(operation), dtype, calls) for calls in kinds)
    assert len(graph) > 10
    for gpu, rows in graph.items():
        for in_graph, in_queue, alone in zip(rows, queued[gpu], single[gpu], strict=True):
            assert in_graph <= in_queue, gpu
            assert PLAUSIBLE_S[0] <= alone - in_queue <= PLAUSIBLE_S[1], gpu


def test_two_products_by_one_call_are_not_far_from_one():
    both = Shape.of(outer=1, inner=2, m=512, k=512, n=512, right=2)
    (alone,) = times("batched_matmul", [both], "bf16", "single")["h100-sxm5-80gb"]
    assert 8e-6 <= alone <= 16e-6  # not the 117 us of an offset that single products of other sizes had
    for dtype in ("fp32", "bf16"):
        for size in SIZES:
            one = times("matmul", [Shape.of(m=size, k=size, n=size)], dtype)
            shapes = [Shape.of(outer=1, inner=b, m=size, k=size, n=size, right=b) for b in (1, 2)]
            for gpu, (same, two) in times("batched_matmul", shapes, dtype).items():
                assert same == pytest.approx(one[gpu][0])
                assert 0.7 * same <= two <= 2.6 * same, (gpu, size)  # one GPU's products were measured, not batches


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        ("matmul", {"m": 256, "k": 256, "n": 256}),
        ("batched_matmul", {"outer": 2, "inner": 4, "m": 128, "k": 128, "n": 128, "right": 8}),
        ("attention", {"b": 2, "h": 8, "s": 512, "d": 64}),
        ("layer_norm", {"m": 1024, "n": 1024}),
        ("softmax", {"m": 1024, "n": 1024}),
    ],
)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_four_times_an_axis_takes_no_less(operation, shape, dtype):
    for axis in shape.keys() - {"right", "inner", "outer"}:
        longer = [Shape.of(**shape | {axis: shape[axis] * times}) for times in (1, 4, 16)]
        longer = [each for each in longer if each[axis] <= OPERATIONS[operation].limits[axis]]
        for gpu, row in times(operation, longer, dtype).items():
            assert all(after >= SLOPE * before for before, after in pairwise(row)), (axis, gpu)


def test_sixteen_bits_take_no_longer_where_their_peak_is_higher():
    for operation in ("matmul", "linear", "vector_add", "softmax", "layer_norm", "attention"):
        shapes = [*sizes_of(OPERATIONS[operation]), OPERATIONS[operation].shape_of_size(LARGE.get(operation, 4096))]
        wide, narrow = (times(operation, shapes, dtype) for dtype in ("fp32", "fp16"))
        for gpu in ("h100-sxm5-80gb", "t4"):
            assert narrow[gpu][-1] <= wide[gpu][-1], (operation, gpu)
            assert all(few <= 1.3 * many for few, many in zip(narrow[gpu], wide[gpu], strict=True)), (operation, gpu)


def test_a_causal_mask_halves_long_attention_and_leaves_short_ones_alone():
    for gpu in GPUS:
        whole, masked = (
            times("attention", [Shape.of(b=1, h=16, s=s, d=128, **flag) for s in (1, 16384)], "bf16", gpus=(gpu,))
            for flag in ({}, {"causal": 1})
        )
        if gpu in whole:
            (short, long), (short_masked, long_masked) = whole[gpu], masked[gpu]
            assert short_masked == pytest.approx(short)
            assert 0.4 * long < long_masked < 0.7 * long


def test_formats_of_as_many_bytes_take_as_long_where_bytes_decide():
    gpus = ("t4", "a100-sxm4-80gb", "gtx-1080-ti")
    for operation in ("copy", "softmax", "matvec"):
        shape = [OPERATIONS[operation].shape_of_size(4096)]
        wide, half, brain = (times(operation, shape, dtype, gpus=gpus) for dtype in ("fp32", "fp16", "bf16"))
        assert half == brain
        assert all(half[gpu] <= wide[gpu] for gpu in gpus)


def test_long_rows_cost_no_more_than_was_measured_and_nothing_where_they_were_not():
    sizes = [OPERATIONS["matmul"].shape_of_size(size) for size in (8192, 32768)]
    for gpu, (short, long) in times("matmul", sizes, "fp64", gpus=("v100-sxm2-16gb", "mi300x", "mi250x")).items():
        assert long == pytest.approx(64 * short, rel=0.05), gpu
    million = [Shape.of(m=4096, k=k, n=4096) for k in (65536, 2**20)]
    ((first, last),) = times("matmul", million, "fp32", gpus=("t4",)).values()
    assert last == pytest.approx(16 * first, rel=0.3)
