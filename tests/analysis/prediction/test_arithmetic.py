"""Which units do the arithmetic: native ones, another format's with the reason, or none."""

import pytest

from gpuexplore.analysis.prediction.calls import arithmetic
from gpuexplore.core.model import Case, Shape
from gpuexplore.hardware import accelerator_named, as_device
from gpuexplore.operations import operation_named
from tests.analysis.made import case, device


def on(key, dtype, operation="matmul"):
    row = accelerator_named(key)
    assert row
    target = as_device(row)
    shape = operation_named(operation).shape_of_size(64)
    return arithmetic(Case(operation, shape, dtype, operation_named(operation).vendor_library.name, row.key), target)


@pytest.mark.parametrize(
    ("key", "dtype", "flop_per_s"),
    [
        ("t4", "fp32", 8.1e12),
        ("t4", "fp16", 65e12),
        ("h100-sxm5-80gb", "fp8", 1979e12),
        ("p100-sxm2-16gb", "fp16", 21.2e12),
    ],
)
def test_a_dtype_with_units_of_its_own_is_native_and_compared_with_their_peak(key, dtype, flop_per_s):
    found = on(key, dtype)
    assert (found.support, found.reason) == ("native", None)
    assert found.peak.flop_per_s == pytest.approx(flop_per_s, rel=1e-3)


@pytest.mark.parametrize("key", ["t4", "v100-sxm2-16gb"])
def test_bf16_before_ampere_is_emulated_in_fp32(key):
    found = on(key, "bf16")
    assert found.support == "emulated"
    assert "has no bf16 units: fp32 does the arithmetic" in str(found.reason)
    assert found.peak.dtype == "fp32"


def test_a_dtype_slower_than_the_one_sums_are_kept_in_is_computed_in_that():
    found = on("gtx-1080-ti", "fp16")
    assert found.support == "emulated"
    assert "slower in fp16 than in fp32" in str(found.reason)


@pytest.mark.parametrize(("key", "dtype"), [("t4", "tf32"), ("t4", "fp8"), ("a100-sxm4-80gb", "fp8")])
def test_a_format_of_matrix_units_that_are_missing_is_unsupported(key, dtype):
    found = on(key, dtype)
    assert (found.support, found.peak) == ("unsupported", None)
    assert f"{dtype} exists only inside matrix units" in str(found.reason)


def test_an_operation_without_products_widens_narrow_formats_and_has_none_of_matrix_units():
    assert "softmax is not a matmul" in str(on("h100-sxm5-80gb", "tf32", "softmax").reason)

    found = on("t4", "bf16", "softmax")
    assert (found.support, found.reason) == ("native", None)
    assert (found.peak.dtype, found.peak.unit) == ("fp32", "vector")


def test_an_implementation_that_computes_in_another_format_is_emulated_and_says_so():
    found = arithmetic(case(dtype="bf16", implementation="numpy"), device())
    assert found.support == "emulated"
    assert found.reason == "numpy computes bf16 in fp32"


def test_an_unknown_peak_stays_unknown_and_a_shape_does_not_matter():
    found = arithmetic(case(dtype="fp32"), device(peaks=()))
    assert (found.support, found.peak) == ("native", None)
    assert found.reason == "no peak is known for it on a made-up processor"

    assert arithmetic(case(shape=Shape.of(m=1, k=2, n=3)), device()) == arithmetic(case(), device())


def test_a_cuda_kernel_of_ours_runs_on_nvidia_gpus_only():
    amd, nvidia = (as_device(accelerator_named(key)) for key in ("mi300x", "t4"))
    assert "CUDA kernel" in str(arithmetic(case(implementation="numba-cuda"), amd).reason)
    assert arithmetic(case(implementation="numba-cuda"), nvidia).support == "native"
