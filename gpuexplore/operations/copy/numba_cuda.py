"""A grid that strides through the vector, each thread four loads of 16 bytes at a time before it stores them.

A load that is followed by a store waits for it, for the compiler cannot know that they do not overlap: four loads in
flight hide four times as much of memory's latency.
"""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import GRID_STRIDE, Block, CudaKernel, Kernel
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, store_vector, vector_length

LOADS_IN_FLIGHT = 4


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype`: nothing is computed."""
    storage = dtype.storage.type
    vector = vector_length(dtype.storage)
    elements = LOADS_IN_FLIGHT * vector

    def copy(a, out):
        registers = cuda.local.array(elements, storage, ALIGNMENT)
        thread = cuda.grid(1)
        stride = cuda.gridsize(1) * vector
        rest = out.size % vector
        i = thread * vector
        end = out.size - rest
        while i + (LOADS_IN_FLIGHT - 1) * stride < end:
            for each in range(LOADS_IN_FLIGHT):
                load_vector(registers, each * vector, a, i + each * stride)
            for each in range(LOADS_IN_FLIGHT):
                store_vector(out, i + each * stride, registers, each * vector)
            i += LOADS_IN_FLIGHT * stride
        while i < end:
            load_vector(registers, 0, a, i)
            store_vector(out, i, registers, 0)
            i += stride
        if thread < rest:
            out[end + thread] = a[end + thread]

    return copy


KERNEL = CudaKernel(_make, GRID_STRIDE)
