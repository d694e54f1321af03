"""Compiled functions called by their address: the same code, and what it raises."""

import numba
import numpy as np
import pytest

from gpuexplore.operations.matmul.numba_cpu_vector import address_of, call_at, untyped


@numba.njit
def add_row(row, out, index):
    if index < 0:
        raise ValueError("no such row")
    for i in range(row.size):
        out[index, i] += row[i]


@numba.njit
def by_address(address, rows, out, first):
    for index in range(rows.shape[0]):
        call_at(address, rows[index], out, index + first)


@numba.njit
def passed_on(address, rows, out):
    for index in range(rows.shape[0]):
        call_at(address, rows[index], out, index)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_function_called_by_its_address_does_what_it_does(kind, transposed):
    rows = np.arange(12, dtype=kind).reshape(3, 4)
    out = np.ones((4, 3), kind).T if transposed else np.ones((3, 4), kind)
    address = address_of(add_row, rows[0], out, 0)

    by_address(address, rows, out, 0)

    np.testing.assert_array_equal(out, rows + 1)
    assert address == address_of(add_row, rows[0], out, 0)


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_arrays_of_any_type_are_passed_on_by_code_that_is_compiled_once(shape):
    for kind in (np.float32, np.float64, np.uint16):
        rows, out = np.arange(12, dtype=kind)[: shape[0] * shape[1]].reshape(shape), np.ones(shape, kind)

        passed_on(address_of(add_row, rows[0], out, 0), untyped(rows), untyped(out))

        np.testing.assert_array_equal(out, rows + 1)
    assert len(passed_on.overloads) <= 2  # one, and one for an array of a single element


def test_what_it_raises_reaches_the_caller():
    rows, out = np.ones((2, 2)), np.zeros((2, 2))

    with pytest.raises(ValueError, match="no such row"):
        by_address(address_of(add_row, rows[0], out, 0), rows, out, -1)
