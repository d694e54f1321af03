from math import sqrt

import ml_dtypes
import numpy as np
import pytest

from gpuexplore.analysis.what_if.rounding_error import (
    C,
    _error_amplification,
    _input_error,
    _rounding,
    expected_error,
    with_input_error,
)
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.core.model import Accuracy, Shape
from gpuexplore.operations import OPERATIONS

ROWS = 96  # 9216 outputs: the norm is known within a few percent
WITHIN = 0.15
HARDWARE = {  # what these formats are in other people's code; inputs and outputs
    "fp64": (np.float64, np.float64),
    "fp32": (np.float32, np.float32),
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    "fp16": (np.float16, np.float16),
    "fp8": (ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16),
}


def rounded_to(name, values):
    if name == "tf32":
        dtype = format_named(name)
        return dtype.widen(dtype.round(values))
    return values.astype(HARDWARE[name][0])


def product_by_hand(name, a, b):
    """Return A B with sums in the format's accumulator, one term after the other, stored as hardware stores it."""
    sums = np.float64 if format_named(name).accumulate == "fp64" else np.float32
    a, b = (rounded_to(name, matrix).astype(np.longdouble) for matrix in (a, b))
    total = np.zeros((len(a), b.shape[1]), sums)
    for k in range(a.shape[1]):
        total = (total + a[:, k, None] * b[None, k]).astype(sums)  # one rounding, as a fused multiply-add
    return total if name == "tf32" else total.astype(HARDWARE[name][1])


def simulated(name, length):
    generator = np.random.default_rng(7)
    a, b = generator.standard_normal((ROWS, length)), generator.standard_normal((length, ROWS))
    right = a.astype(np.longdouble) @ b.astype(np.longdouble)
    error = product_by_hand(name, a, b).astype(np.longdouble) - right
    return float(np.sqrt((error**2).sum() / (right**2).sum()))


@pytest.mark.parametrize("length", [16, 128, 1024])
@pytest.mark.parametrize("name", FORMATS)
def test_expected_error_of_a_product_is_what_a_simulation_finds(name, length):
    shape = Shape.of(m=ROWS, k=length, n=ROWS)

    assert expected_error("matmul", shape, FORMATS[name]) == pytest.approx(simulated(name, length), rel=WITHIN)


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@pytest.mark.parametrize("operation", ["vector_add", "multiply", "layer_norm", "softmax", "copy"])
def test_expected_error_of_other_operations_is_what_rounding_inputs_and_output_gives(operation, name):
    contract, dtype = OPERATIONS[operation], FORMATS[name]
    shape = contract.shape_of_size(256 if len(contract.axes) > 1 else 65536)
    generator = np.random.default_rng(3)
    inputs = [generator.standard_normal(array) for array in contract.inputs(shape)]
    right = contract.reference(*inputs)
    out = contract.reference(*(array.astype(HARDWARE[name][0]).astype(np.float64) for array in inputs))
    error = np.linalg.norm(out.astype(HARDWARE[name][1]).astype(np.float64) - right) / np.linalg.norm(right)
    sums_in_fp32 = _rounding(FORMATS["fp32"]) * sqrt((contract.reduction_length(shape) + 1) / 2)
    by_hand = sqrt(error**2 + (sums_in_fp32**2 if contract.flop_count(shape) else 0))  # sums here were in fp64

    assert expected_error(operation, shape, dtype) == pytest.approx(by_hand, rel=WITHIN)


@pytest.mark.parametrize("name", FORMATS)
def test_one_rounding_costs_c_times_the_unit_roundoff(name):
    values = np.random.default_rng(1).standard_normal(100_000)
    if name == "fp64":
        values = values.astype(np.longdouble) + np.random.default_rng(2).standard_normal(100_000) * 1e-17
    error = rounded_to(name, values).astype(np.longdouble) - values

    found = float(np.sqrt((error**2).sum() / (values**2).sum()))
    assert found == pytest.approx(_rounding(FORMATS[name]), rel=0.05)


def test_c_is_the_constant_of_normal_numbers():
    assert pytest.approx(0.4254, abs=1e-4) == C


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("matmul", sqrt(2)), ("multiply", sqrt(2)), ("vector_add", 1), ("copy", 1), ("conv2d", sqrt(2))],
)
def test_a_product_passes_on_both_inputs_errors_and_a_sum_their_mean(operation, factor):
    assert _error_amplification(operation) == pytest.approx(factor, rel=0.05)


def test_a_measured_error_is_widened_by_that_of_the_inputs_which_fp64_has_none_of():
    assert _input_error("matmul", FORMATS["fp64"]) == 0

    found = with_input_error(Accuracy(3e-3, 1e-2), "matmul", FORMATS["bf16"])

    assert found == pytest.approx(sqrt(3e-3**2 + (_error_amplification("matmul") * C / 256) ** 2))
    assert with_input_error(Accuracy(None, 1e-2), "matmul", FORMATS["bf16"]) is None


def test_longer_sums_lose_more_and_wider_formats_less():
    long, short = Shape.of(m=8, k=65536, n=8), Shape.of(m=8, k=16, n=8)

    assert expected_error("matmul", long, FORMATS["fp32"]) > expected_error("matmul", short, FORMATS["fp32"])
    errors = [expected_error("matmul", short, FORMATS[name]) for name in ("fp64", "fp32", "fp16", "bf16", "fp8")]
    assert errors == sorted(errors)
