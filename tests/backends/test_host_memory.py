"""Where arrays of the CPU's implementations lie: the same in every process."""

import mmap

import numpy as np
import pytest

from gpuexplore.backends import host_memory, load_backend
from gpuexplore.backends.host_memory import HUGE_PAGE_BYTES
from gpuexplore.dtypes import dtype_named


@pytest.mark.parametrize("shape", [(1,), (100,), (3, 5, 7), (1 << 20,), ((1 << 19) + 1,)])
def test_arrays_start_on_a_boundary_of_huge_pages(shape):
    array = host_memory.empty(shape, np.dtype(np.float32))
    array[...] = 1.0

    assert array.shape == shape
    assert array.ctypes.data % HUGE_PAGE_BYTES == 0
    assert array.sum(dtype=np.float64) == np.prod(shape)


def test_a_copy_is_contiguous_and_of_the_same_values():
    values = np.arange(12, dtype=np.float16).reshape(3, 4).T

    copy = host_memory.copy_of(values)

    assert copy.flags.c_contiguous
    assert not np.shares_memory(copy, values)
    np.testing.assert_array_equal(copy, values)


@pytest.mark.parametrize("name", ["numpy", "numba_cpu", "torch"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_every_library_of_the_cpu_gets_such_arrays(name, dtype):
    backend, wanted = load_backend(name), dtype_named(dtype)
    there = backend.to_device(wanted.round(np.ones(1000, np.float32)), wanted, "cpu")
    out = backend.empty((1000,), wanted, "cpu")

    assert {_address(there) % HUGE_PAGE_BYTES, _address(out) % HUGE_PAGE_BYTES} == {0}


def _address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def test_a_kernel_without_huge_pages_costs_nothing_but_them(monkeypatch):
    asked = []

    class Refusing(mmap.mmap):
        def madvise(self, option):
            asked.append(option)
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(host_memory, "ADVICE", 14)
    monkeypatch.setattr(host_memory.mmap, "mmap", Refusing)

    assert host_memory.empty((3,), np.dtype(np.float32)).shape == (3,)
    assert asked == [14]
