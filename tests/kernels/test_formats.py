"""16-bit numbers widen exactly and narrow to the nearest even one, as NumPy and ml_dtypes do."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from gpuexplore.kernels.cpu_micro_kernel import narrow, widen

STORED = {"bf16": (np.uint16, ml_dtypes.bfloat16), "fp16": (np.int16, np.float16)}


@njit
def widened(stored, out):
    for i in range(out.size):
        out[i] = widen(stored[i])


@njit
def narrowed(values, out):
    for i in range(out.size):
        out[i] = narrow(values[i], out.dtype)


@pytest.mark.parametrize("name", STORED)
def test_all_65536_numbers_widen_exactly(name):
    storage, kind = STORED[name]
    bits = np.arange(2**16, dtype=np.uint16)
    out = np.empty(2**16, np.float32)

    widened(bits.view(storage), out)

    np.testing.assert_array_equal(out, bits.view(kind).astype(np.float32))


@pytest.mark.parametrize("name", STORED)
def test_every_number_and_the_ties_between_neighbours_narrow_as_numpy_does(name):
    storage, kind = STORED[name]
    exact = np.arange(2**16, dtype=np.uint16).view(kind).astype(np.float32)
    finite = np.sort(exact[np.isfinite(exact)])
    with np.errstate(over="ignore"):
        ties = (finite[:-1].astype(np.float64) + finite[1:]) / 2
    values = np.concatenate([exact, ties.astype(np.float32)])
    out = np.empty(values.size, storage)

    narrowed(values, out)

    with np.errstate(all="ignore"):
        right = values.astype(kind).astype(np.float32)
    np.testing.assert_array_equal(out.view(kind).astype(np.float32), right)


@given(st.floats(width=32))
@example(float("nan"))
@example(float("inf"))
@example(3.4028234663852886e38)
@example(1e-45)
def test_any_fp32_narrows_as_numpy_does(value):
    values = np.array([value], np.float32)
    for storage, kind in STORED.values():
        out = np.empty(1, storage)
        narrowed(values, out)
        with np.errstate(all="ignore"):
            right = values.astype(kind).astype(np.float32)
        np.testing.assert_array_equal(out.view(kind).astype(np.float32), right)


def test_wide_numbers_stay_as_they_are():
    values, out = np.array([1 / 3, np.pi]), np.empty(2)

    narrowed(values, out)

    np.testing.assert_array_equal(out, values)
