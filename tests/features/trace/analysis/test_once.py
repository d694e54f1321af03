"""Work that an operation leaves to others within it: it stands with the one that took the time, and once."""

import pytest

from gpuexplore.features.trace.analysis.call_kinds import kind_of
from tests.features.trace.analysis.made import H100, as_bytes, called, kernel, launch, table_from

IMAGE, WEIGHT = ((32, 256, 64, 64), "c10::BFloat16"), ((256, 128, 4, 4), "c10::BFloat16")
STEPS = ("[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1")
FLOPS = 2 * 32 * 64 * 64 * 256 * 128 * 16
BYTES = 2 * (32 * 256 * 64 * 64 + 256 * 128 * 16 + 32 * 128 * 128 * 128)


def outer(time_us=100.0):
    return called("aten::convolution", IMAGE, WEIGHT, None, *STEPS, number=1) | {"dur": time_us}


def inner(name="aten::new_convolution", start_us=10.0, time_us=80.0, image=IMAGE):
    return called(name, image, WEIGHT, start_us=start_us, number=int(start_us)) | {"dur": time_us}


def work_of(*events):
    """Return the FLOPs and the bytes of one call of each operation."""
    found = table_from({"deviceProperties": [H100], "traceEvents": list(events)})
    return {row.operation: (row.flop_count, row.byte_count) for row in found.rows}


def test_the_work_of_a_product_stands_with_the_call_of_its_kind_that_took_the_time_however_deep():
    on_the_host = work_of(outer(), inner())
    on_a_gpu = work_of(outer(), inner(), launch(20.0, 11, 10), kernel("dgrad", 200.0, 300.0, 11, 10))

    for found in (on_the_host, on_a_gpu):
        assert found["aten::convolution"] == (None, None)
        assert found["aten::new_convolution"] == (FLOPS, BYTES)

    found = work_of(outer(), inner("aten::thnn_conv2d"), inner("aten::new_convolution", 20.0, 60.0))

    assert found["aten::thnn_conv2d"] == (None, None)
    assert found["aten::new_convolution"] == (FLOPS, BYTES)


@pytest.mark.parametrize(
    "within",
    [inner(time_us=40.0), inner("aten::copy_"), inner("aten::mkldnn_reorder_conv2d_weight")],
    ids=["a short one", "a copy", "a reordering"],
)
def test_work_stays_with_a_product_that_took_the_time_itself(within):
    assert work_of(outer(), within)["aten::convolution"] == (FLOPS, BYTES)


def test_alike_calls_have_equal_parts_and_unlike_ones_none_that_is_known():
    halves = inner(start_us=10.0, time_us=40.0), inner(start_us=50.0, time_us=40.0)
    other = inner("aten::other_convolution", start_us=50.0, time_us=40.0)

    assert work_of(outer(), *halves)["aten::new_convolution"] == (FLOPS // 2, BYTES // 2)
    assert set(work_of(outer(), halves[0], other).values()) == {(None, None)}


@pytest.mark.parametrize(
    "name",
    [
        *("aten::miopen_convolution", "aten::miopen_depthwise_convolution", "aten::cudnn_convolution_transpose"),
        *("aten::_conv_depthwise2d", "aten::slow_conv3d_forward", "aten::_nnpack_spatial_convolution"),
        *("aten::_mps_convolution", "mkldnn::_convolution_pointwise", "quantized::conv2d_relu"),
    ],
)
def test_convolutions_of_any_library_are_of_their_kind_and_what_only_resembles_one_is_not(name):
    assert kind_of(name) == "convolutions"
    assert kind_of("aten::_convert_weight_to_int4pack") is None
    assert kind_of("autograd::engine::evaluate_function: ConvolutionBackward0") is None
