"""Number formats: rounding is that of NumPy and ml_dtypes, bit by bit, and widening is exact."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.core.dtypes import DTYPES, FORMATS, dtype_named, format_named
from gpuexplore.core.errors import InvalidInput

NATIVE = {"fp64": np.float64, "fp32": np.float32, "bf16": ml_dtypes.bfloat16, "fp16": np.float16}
EACH = pytest.mark.parametrize("name", DTYPES)
EXACT_IN_FP32 = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100)


@pytest.mark.parametrize(
    ("name", "itemsize_bytes", "storage", "roundoff"),
    [
        ("fp64", 8, "float64", 2.0**-53),
        ("fp32", 4, "float32", 2.0**-24),
        ("tf32", 4, "float32", 2.0**-11),
        ("bf16", 2, "uint16", 2.0**-8),
        ("fp16", 2, "float16", 2.0**-11),
    ],
)
def test_format_has_its_size_storage_and_roundoff(name, itemsize_bytes, storage, roundoff):
    row = dtype_named(name)

    assert (row.itemsize_bytes, row.storage, row.unit_roundoff) == (itemsize_bytes, np.dtype(storage), roundoff)
    assert row.storage.itemsize == row.itemsize_bytes


@EACH
def test_sums_are_kept_in_a_format_at_least_as_precise(name):
    row = DTYPES[name]

    assert DTYPES[row.accumulate].significand_bits >= row.significand_bits
    assert row.about


@pytest.mark.parametrize("name", NATIVE)
@given(values=st.lists(EXACT_IN_FP32, min_size=1, max_size=20))
def test_rounding_is_that_of_the_library_that_knows_the_format(name, values):
    given_values = np.array(values)
    with np.errstate(over="ignore"):
        right = (
            given_values.astype(np.float32).astype(NATIVE[name])
            if name == "bf16"
            else given_values.astype(NATIVE[name])
        )
        stored = DTYPES[name].round(given_values)

    np.testing.assert_array_equal(stored.view(right.dtype), right)
    np.testing.assert_array_equal(DTYPES[name].widen(stored), right.astype(np.float64))


@given(st.floats(2.0**-100, 2.0**100, width=32))
def test_tf32_keeps_eleven_significant_bits_and_errs_by_half_of_the_last(value):
    row = DTYPES["tf32"]
    (stored,) = row.round(np.array([value]))

    assert stored.view(np.uint32) & np.uint32(0x1FFF) == 0
    assert abs(float(stored) - value) <= row.unit_roundoff * value


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("bf16", 1 + 2.0**-8, 1.0),  # half way: the even neighbour, below
        ("bf16", 1 + 3 * 2.0**-8, 1 + 2.0**-6),  # half way: the even neighbour, above
        ("bf16", 1 + 2.0**-8 + 2.0**-20, 1 + 2.0**-7),
        ("tf32", 1 + 2.0**-11, 1.0),
        ("tf32", 1 + 3 * 2.0**-11, 1 + 2.0**-9),
        ("tf32", -1 - 2.0**-11 - 2.0**-20, -1 - 2.0**-10),
    ],
)
def test_ties_go_to_the_even_neighbour(name, value, nearest):
    row = DTYPES[name]

    assert row.widen(row.round(np.array([value]))).tolist() == [nearest]


@EACH
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.5, 0.125])
def test_numbers_that_every_format_has_stay_as_they_are(name, value):
    row = DTYPES[name]
    (back,) = row.widen(row.round(np.array([value])))

    assert back == value
    assert np.signbit(back) == np.signbit(value)


@pytest.mark.parametrize(("name", "infinity"), [("bf16", 0x7F80), ("fp16", 0x7C00)])
def test_every_finite_number_of_sixteen_bits_survives_widening_and_rounding(name, infinity):
    row, bits = DTYPES[name], np.arange(2**16, dtype=np.uint16)
    finite = bits[(bits & 0x7FFF) < infinity]
    wide = row.widen(finite.view(row.storage))

    assert np.isfinite(wide).all()
    np.testing.assert_array_equal(row.round(wide).view(np.uint16), finite)


def test_unknown_dtype_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match="dtype 'fp8': expected fp64, fp32, tf32, bf16, fp16"):
        dtype_named("fp8")


def test_formats_that_overflow_early_say_where():
    assert {name: row.largest for name, row in FORMATS.items() if row.largest} == {
        "fp16": float(np.finfo(np.float16).max),
        "fp8": float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max),
    }


def test_a_format_that_is_only_predicted_is_no_dtype_to_measure():
    assert set(FORMATS) - set(DTYPES) == {"fp8"}
    assert format_named("fp8").unit_roundoff == float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).eps) / 2
    with pytest.raises(InvalidInput, match="dtype 'fp4': expected fp64, fp32, tf32, bf16, fp16, fp8"):
        format_named("fp4")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fp64", "float64 double f64 FP64 torch.float64"),
        ("fp32", "float32 float single f32 Float32 np.float32"),
        ("tf32", "TF32 tensorfloat32 tf-32"),
        ("bf16", "bfloat16 BF16 torch.bfloat16 bfloat-16"),
        ("fp16", "float16 half f16 torch.half FP-16"),
        ("fp8", "float8 fp8_e4m3 E4M3 float8_e4m3fn torch.float8_e4m3fn"),
    ],
)
def test_formats_have_the_names_that_people_and_libraries_give_them(name, said):
    assert {format_named(word).name for word in said.split()} == {name}


@pytest.mark.parametrize("other", ["fp4", "e5m2", "float8_e5m2", "int8", "fp16x2", ""])
def test_a_format_that_is_not_here_is_no_other(other):
    with pytest.raises(InvalidInput, match="expected fp64, fp32"):
        format_named(other)
