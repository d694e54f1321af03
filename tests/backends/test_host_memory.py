"""Placement of the arrays of CPU implementations: where a library allocates them, or on boundaries of huge pages."""

import mmap

import numpy as np
import pytest

from gpuexplore.backends import host, load_backend
from gpuexplore.backends.host import HUGE_PAGE_BYTES, aligned
from gpuexplore.core.dtypes import dtype_named


@pytest.mark.parametrize("shape", [(1,), (100,), (3, 5, 7), (1 << 20,), ((1 << 19) + 1,)])
def test_arrays_in_pages_start_on_a_boundary_of_huge_pages(shape):
    with aligned("pages"):
        array = host.empty(shape, np.dtype(np.float32))
    array[...] = 1.0

    assert array.shape == shape
    assert array.ctypes.data % HUGE_PAGE_BYTES == 0
    assert array.sum(dtype=np.float64) == np.prod(shape)


def test_arrays_are_the_librarys_own_before_and_after():
    with aligned("pages"), aligned("library"):
        inside = host.empty((100,), np.dtype(np.float32))
    outside = host.empty((100,), np.dtype(np.float32))

    assert inside.base is outside.base is None
    assert host.in_pages((100,), np.dtype(np.float32)) is None


@pytest.mark.parametrize("align", ["library", "pages"])
def test_a_copy_is_contiguous_and_of_the_same_values(align):
    values = np.arange(12, dtype=np.float16).reshape(3, 4).T

    with aligned(align):
        copy = host.copy_of(values)

    assert copy.flags.c_contiguous
    assert not np.shares_memory(copy, values)
    np.testing.assert_array_equal(copy, values)


@pytest.mark.parametrize("align", ["library", "pages"])
@pytest.mark.parametrize("name", ["numpy", "numba_cpu", "torch"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_every_library_of_the_cpu_gets_arrays_as_it_was_asked_for(name, dtype, align):
    backend, wanted = load_backend(name), dtype_named(dtype)
    values = wanted.round(np.arange(1000, dtype=np.float32) % 100)
    with aligned(align):
        there = backend.to_device(values, wanted, "cpu")
        out = backend.empty((1000,), wanted, "cpu")

    assert ({_address(there) % HUGE_PAGE_BYTES, _address(out) % HUGE_PAGE_BYTES} == {0}) == (align == "pages")
    np.testing.assert_array_equal(backend.stored(there, wanted), values)
    backend.poison(there)
    np.testing.assert_array_equal(wanted.widen(values), np.arange(1000) % 100)  # a copy: what it was made of stays


def _address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def test_a_kernel_without_huge_pages_costs_nothing_but_them(monkeypatch):
    asked = []

    class Refusing(mmap.mmap):
        def madvise(self, option):
            asked.append(option)
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(host, "ADVICE", 14)
    monkeypatch.setattr(host.mmap, "mmap", Refusing)

    with aligned("pages"):
        assert host.empty((3,), np.dtype(np.float32)).shape == (3,)
    assert asked == [14]
