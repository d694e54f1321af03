"""The share of the roof of one call whose time on the GPU makes it a round one, or a known one."""

import pytest

from gpuexplore.features.trace.analysis.headline import headline, notes
from gpuexplore.hardware import accelerator_named, as_device
from tests.features.trace.analysis.made import A100, B200, H100, MI300X, as_bytes, called, kernel, launch, table_from

BF16, HALF, FP32 = "c10::BFloat16", "c10::Half", "float"
ROOF = {gpu["name"]: as_device(accelerator_named(gpu["name"])) for gpu in (H100, A100, MI300X)}


def table(made, time_us, gpu=H100, device=0, kernel_name="k"):
    """Return the table of a call that launched one kernel."""
    events = [made, launch(5.0, 11, 1), kernel(kernel_name, 40.0, time_us, 11, 1, device=device)]
    return table_from({"deviceProperties": [gpu], "traceEvents": events})


def share(*arguments, **options):
    return max(table(*arguments, **options).rows, key=lambda row: row.time_s).roof_share


WIDE, LONG = (8192, 16384), (8192, 8192)


@pytest.mark.parametrize(
    ("made", "byte_count", "gpu"),
    [
        (called("aten::mul", (WIDE, BF16), ((), "double")), 2 * 2 * 8192 * 16384, H100),
        (called("aten::mul", (LONG, FP32), ((), "double"), (LONG, FP32)), 2 * 4 * 8192**2, A100),
        (called("aten::div_", (LONG, FP32), ((), "long int")), 2 * 4 * 8192**2, A100),
        (called("aten::add_", (WIDE, HALF), (WIDE, FP32), "1"), (2 + 2 + 4) * 8192 * 16384, A100),
        (called("aten::lt", (WIDE, FP32), "0.5"), (4 + 1) * 8192 * 16384, MI300X),
        (called("aten::clamp_min_", (WIDE, BF16), "0."), 2 * 2 * 8192 * 16384, H100),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_what_moves_its_bytes_at_nine_tenths_of_the_bandwidth_says_so(made, byte_count, gpu):
    time_us = byte_count / ROOF[gpu["name"]].bandwidth.bytes_per_s / 0.9 * 1e6

    assert share(made, time_us, gpu=gpu) == pytest.approx(0.9, rel=1e-5)


TENSOR = (2, 16, 16384, 128)
BY_TOKENS = ((2, 16384, 16, 128), BF16)


def causal(flag):
    return called("aten::_scaled_dot_product_flash_attention", *[(TENSOR, BF16)] * 3, "0.", flag, "False", "")


def test_attention_under_a_causal_mask_does_half_of_the_work():
    assert share(causal("True"), 3435.9738) == pytest.approx(0.647, abs=5e-4)
    assert share(causal("False"), 3435.9738 * 2) == pytest.approx(0.647, abs=5e-4)
    assert not [note for note in notes(table(causal("True"), 3436.0)) if "mask" in note or "Above" in note]


def test_what_only_a_mask_could_explain_is_named_so():
    unsaid = " ".join(notes(table(causal(""), 3435.9738)))
    masked = called(
        "aten::scaled_dot_product_attention", *[(TENSOR, BF16)] * 3, ((16384, 16384), "bool"), "0.", "False"
    )
    impossible = " ".join(notes(table(causal(""), 1000.0)))

    assert "operations above the roof would then reach 64.7 %" in unsaid
    assert "Above the roof:" not in unsaid
    assert "64.7 %" in " ".join(notes(table(masked, 3435.9738)))
    assert "Above the roof: aten::_scaled_dot_product_flash_attention" in impossible


@pytest.mark.parametrize(
    "made",
    [
        called("flash_attn::_flash_attn_forward", *[BY_TOKENS] * 3, "0.", "0.0884", "True"),
        called("FlashAttnFunc", *[BY_TOKENS] * 3, "0.", "", "True", ""),
        called("xformers_flash::flash_fwd", *[BY_TOKENS] * 3, *[""] * 5, "0.", "0.0884", "True", "-1", "-1"),
        called("aiter::mha_fwd", *[BY_TOKENS] * 3, "0.", "0.0884", "True", "-1", "0"),
        called("xformers::efficient_attention_forward_cutlass", *[BY_TOKENS] * 3, *[""] * 5, "0.", "1", "False"),
    ],
    ids=lambda made: made["name"],
)
def test_attention_of_packages_has_its_flops_and_bytes(made):
    tensors_bytes = 4 * 2 * 2 * 16384 * 16 * 128

    assert table(made, 3440.0).rows[0].byte_count == tensors_bytes
    assert share(made, 3440.0) == pytest.approx(0.646, abs=5e-4)


@pytest.mark.parametrize("name", ["vllm::unified_attention", "transformer_engine::fused_attn_fwd", "NewAttnFunc"])
def test_attention_that_is_not_known_is_named_with_no_flops(name):
    found = table(called(name, *[BY_TOKENS] * 3), 3440.0)

    assert share(called(name, *[BY_TOKENS] * 3), 3440.0) is None
    assert f"FLOPs unknown for {name}" in " ".join(notes(found))


def test_what_has_no_known_work_has_no_roof_of_its_bytes():
    packed = ((32768, 16, 128), BF16)
    uneven = called("flash_attn::_flash_attn_varlen_forward", *[packed] * 3, *[((9,), "int")] * 2, "8192", "8192")
    lists = called("aten::_foreach_add_", "", "1.")
    lists["args"] |= {"Input Dims": [[list(WIDE), list(WIDE)], []], "Input type": ["TensorList", "Scalar"]}

    assert share(uneven, 900.0) is None
    assert "FLOPs unknown for flash_attn::_flash_attn_varlen_forward" in " ".join(notes(table(uneven, 900.0)))
    assert share(lists, 900.0) is None
    assert "Bytes unknown for aten::_foreach_add_" in " ".join(notes(table(lists, 900.0)))


def test_attention_of_transformer_engine_is_counted_without_its_mask():
    made = called("FusedAttnFunc", "True", "16384", "16384", *[((3,), "int")] * 2, *[""] * 4, *[BY_TOKENS] * 3)
    found = table(made, 3440.0 * 2)

    assert found.rows[0].byte_count == 4 * 2 * 2 * 16384 * 16 * 128
    assert found.rows[0].roof_share == pytest.approx(0.646, abs=5e-4)
    assert "Counted without a mask" in " ".join(notes(found))


def test_a_gpu_that_kernels_number_otherwise_is_the_one_that_is_described():
    product = called("aten::mm", *[((4096, 4096), BF16)] * 2)
    found = table(product, 230.0, gpu=MI300X, device=2)

    assert found.on.name == "Instinct MI300X"
    assert "although its kernels have another device number" in " ".join(notes(found))
    assert share(product, 230.0, gpu=MI300X, device=2) == pytest.approx(2 * 4096**3 / 230e-6 / 1307.4e12, rel=1e-3)


@pytest.mark.parametrize(
    "name", ["Memcpy HtoD (Pinned -> Device)", "CopyDeviceToHost", "Memcpy PtoP (Device -> Device)"]
)
def test_a_copy_over_a_link_is_not_compared_with_a_memory(name):
    copy = called("aten::copy_", (LONG, FP32), (LONG, FP32), "False")

    assert share(copy, 10_000.0, kernel_name=name) is None
    assert share(copy, 10_000.0, kernel_name="Memcpy DtoD (Device -> Device)") > 0


FP8, DECODED = "c10::Float8_e4m3fn", ((1, 4096), (4096, 28672))


def test_a_product_of_one_row_is_bound_by_the_memory_its_weights_come_from():
    scale = ((), FP32)
    product = called("aten::_scaled_mm", *((dims, FP8) for dims in DECODED), scale, scale, None, None, "15", "True")
    byte_count = 4096 + 4096 * 28672 + 8 + 2 * 28672
    found = table(product, byte_count / ROOF[H100["name"]].bandwidth.bytes_per_s / 0.85 * 1e6).rows[0]

    assert (found.least.bound, found.roof_share) == ("memory", pytest.approx(0.85, rel=1e-4))


@pytest.mark.parametrize(
    ("dims", "bound"),
    [
        (((1, 4096), (4096, 4096)), None),
        (((128, 2048), (2048, 2048)), None),
        (((2048, 2048), (2048, 2048)), "compute"),
    ],
)
def test_what_fits_a_cache_is_bound_by_arithmetic_only_above_the_ridge_of_the_memory(dims, bound):
    found = table(called("aten::mm", *((each, BF16) for each in dims)), 30.0)
    least = found.rows[0].least

    assert (least and least.bound) == bound
    assert headline(found).endswith("the share of the roof is unknown.") == (bound is None)


def test_products_of_unknown_bytes_have_no_roof_and_complex_ones_the_peak_of_their_parts_and_no_counterpart():
    product = called("aten::mm", ((4096, 4096), BF16), ((4096, 4096), BF16), ((4096, 4096), "c10::New"))

    assert table(product, 230.0).rows[0].flop_count == 2 * 4096**3
    assert share(product, 230.0) is None

    product = called("aten::mm", *[((4096, 4096), "c10::complex<float>")] * 2)
    peak = ROOF[H100["name"]].peak("fp32", "matrix").flop_per_s
    found = table(product, 8 * 4096**3 / peak / 0.8 * 1e6).rows[0]

    assert (found.roof_share, found.counterpart) == (pytest.approx(0.8, rel=1e-4), None)


def test_products_of_packed_fp4_are_compared_with_their_own_peak():
    packed, scales = "c10::Float4_e2m1fn_x2", ((4_194_304,), FP8)
    product = called("aten::_scaled_mm", ((8192, 4096), packed), ((4096, 8192), packed), scales, scales)
    found = table(product, 2 * 8192**3 / 9000e12 / 0.8 * 1e6, gpu=B200).rows[0]

    assert found.flop_count == 2 * 8192**3
    assert (found.least.bound, found.roof_share) == ("compute", pytest.approx(0.8, rel=1e-4))
    assert share(product, 200.0) is None, "an H100 has no arithmetic of fp4"
