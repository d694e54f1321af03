import warnings

import pytest
import torch

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.evaluate import (
    STORED,
    StepRefused,
    evaluate,
    printed,
    repairs,
    type_name,
    why_view_fails,
    write_sentences,
)
from gpuexplore.features.tensors.analysis.reading import reading, reading_sentences


def refused(expression):
    with pytest.raises(StepRefused) as caught:
        evaluate(expression)
    return caught.value


def cost(expression, kind="cpu"):
    return reading(evaluate(expression).result, 4, kind)


def test_the_two_axes_that_view_cannot_merge_are_named_with_their_strides():
    error = refused("x = 2x3; x.t().view(2, 3)")
    told = " ".join(why_view_fails(error.chain.result, error.view_refused))

    assert "axes 0 and 1 of (3, 2)" in told
    assert "2 × 3 = 6; it has 1" in told
    assert repairs(error.view_refused) == (".contiguous().view(2, 3)", ".reshape(2, 3)")
    assert {evaluate(f"x = 2x3; x.t(){call}").result.shape for call in repairs(error.view_refused)} == {(2, 3)}


def test_only_the_axes_in_the_way_are_blamed():
    """Axes 2 and 3 continue each other: the run has 12 elements, and axis 1 breaks it."""
    error = refused("x = 2x5x3x4; x[:, ::2].view(2, 36)")
    found = error.view_refused

    assert (found.outer, found.inner, found.stride, found.run_length * found.run_stride) == (1, 2, 24, 12)


def test_a_write_names_cells_and_who_sees_it_and_one_into_a_copy_that_has_no_name_is_lost():
    chain = evaluate("x = 2x3; y = x.t(); z = x.clone(); w = x[1]; x[0][1] = 100")

    assert write_sentences(chain, chain.writes[0]) == (
        "It changes cell 1 of storage A.",
        "x sees it at [0, 1].",
        "y sees it at [1, 0].",
        "z has its own storage: unchanged.",
        "w shares the storage, but has none of these cells.",
    )

    chain = evaluate("x = 2x3; x.t().reshape(6)[3] = 100")

    assert "the write has no visible effect" in write_sentences(chain, chain.writes[0])[-1]


def test_a_transpose_of_2000_rows_fetches_a_line_for_each_element_and_a_warp_a_sector():
    """16 elements of 4 bytes fill a line of 64; a column touches 2000 lines: 128,000 bytes have to be kept.

    32 elements of a warp fill 4 sectors of 32 bytes, and touch 32 where they are strided.
    """
    found = cost("x = 2000x2000; x.t()")

    assert (found.ratio, found.kept_bytes, found.least_bytes) == (16, 128_000, 16_000_000)
    assert "16 times" in reading_sentences(found, "cpu")[0]
    assert "125 KiB" in reading_sentences(found, "cpu")[1]
    assert cost("x = 2000x2000; x.t()", "cuda").ratio == 8


def test_no_cache_helps_where_the_rest_of_a_line_is_never_read_and_one_that_holds_a_broadcast_row_does():
    found, broadcast = cost("x = 1000x64; x[:, 0]"), cost("x = 1x1024; x.expand(500, 1024)")

    assert found.fetched_bytes == found.least_bytes == 64_000
    assert "no cache helps" in reading_sentences(found, "cpu")[-1]
    assert broadcast.kept_bytes == broadcast.least_bytes == 4096
    assert cost("x = 4x4; x[2:2]") is None


@pytest.mark.parametrize("expression", ["2000x2000", "4x4", "arange(7)", "x = 4x4; x.t()"])
def test_what_lies_together_costs_no_more_than_contiguous(expression):
    assert cost(expression).ratio == 1
    assert len(reading_sentences(cost(expression), "cpu")) == 1


@pytest.mark.parametrize("dtype", STORED)
def test_torch_prints_the_same(dtype):
    chain = evaluate("x = 2x3; x.t()[1:]")
    told = dict(printed(chain.result, chain.storage, dtype, "cpu"))
    x = torch.arange(6).view(2, 3).to(getattr(torch, STORED[dtype].array_name)).t()[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # x.storage() is deprecated, as the notebooks are
        said = {call: repr(eval(call, {"x": x})) for call in told}

    assert told == said


@pytest.mark.parametrize("dtype", STORED)
def test_the_cuda_form_is_what_torch_has_a_class_for(dtype):
    """The oracle needs no GPU: torch keeps its legacy types under these names."""
    tensor, storage = type_name("Tensor", dtype, "cuda"), type_name("Storage", dtype, "cuda")

    assert isinstance(getattr(torch.cuda, tensor.removeprefix("torch.cuda.")), type)
    assert isinstance(getattr(torch.cuda, storage.removeprefix("torch.cuda.")), type)


def test_types_are_those_of_the_notebook_and_none_of_tf32():
    assert type_name("Storage", "fp32", "cuda") == "torch.cuda.FloatStorage"
    assert type_name("Storage", "fp32", "cpu") == "torch.FloatStorage"

    with pytest.raises(InvalidInput, match="tf32"):
        type_name("Tensor", "tf32", "cuda")
    with pytest.raises(InvalidInput, match="tpu"):
        type_name("Tensor", "fp32", "tpu")
