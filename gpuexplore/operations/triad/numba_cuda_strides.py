"""A grid that strides through the vectors, each thread two loads of 16 bytes from both before it stores.

A load that is followed by a store waits for it, for the compiler cannot know that they do not overlap: four loads in
flight hide four times as much of memory's latency.
"""

from typing import Any

from numba import cuda

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import GRID_STRIDE, Block
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, store_vector, vector_length
from gpuexplore.operations.triad import FACTOR

AHEAD = 2  # loads of each vector in flight


def adder(factor: Any) -> Any:
    """Return a device function that overwrites elements of the first vector by the result."""

    @inlined
    def add(left, right, count):
        for each in range(count):
            left[each] = narrow(widen(left[each]) + factor * widen(right[each]), left.dtype)

    return add


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype`."""
    storage, vector = dtype.storage.type, vector_length(dtype.storage)
    factor = DTYPES[dtype.accumulate].storage.type(FACTOR)  # a Python float would make it a double
    add, elements = adder(factor), AHEAD * vector

    def triad(a, b, out):
        left = cuda.local.array(elements, storage, ALIGNMENT)
        right = cuda.local.array(elements, storage, ALIGNMENT)
        thread, stride = cuda.grid(1), cuda.gridsize(1) * vector
        rest = out.size % vector
        i, end = thread * vector, out.size - rest
        while i + (AHEAD - 1) * stride < end:
            for each in range(AHEAD):
                load_vector(left, each * vector, a, i + each * stride)
                load_vector(right, each * vector, b, i + each * stride)
            add(left, right, AHEAD * vector)
            for each in range(AHEAD):
                store_vector(out, i + each * stride, left, each * vector)
            i += AHEAD * stride
        while i < end:
            load_vector(left, 0, a, i)
            load_vector(right, 0, b, i)
            add(left, right, vector)
            store_vector(out, i, left, 0)
            i += stride
        if thread < rest:
            out[end + thread] = narrow(widen(a[end + thread]) + factor * widen(b[end + thread]), out.dtype)

    return triad


KERNEL = CudaKernel(make, GRID_STRIDE)
build = KERNEL.build
