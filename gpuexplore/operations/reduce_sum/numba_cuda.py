"""A CUDA kernel in Numba: one block per row, whose threads have four loads of 16 bytes in flight each.

Shuffles join the sums of a warp, shared memory those of the warps. Sums are kept in fp32 (fp64 for fp64); a block of
32 threads is one warp per row.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import (
    ROW_PER_BLOCK,
    WARP,
    Block,
    CudaKernel,
    Kernel,
    inlined,
    narrow,
    sum_type,
    widen,
)
from gpuexplore.kernels.device_functions import VECTORS_PER_THREAD, block_functions, row_functions
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, vector_length


def _thread_sum(dtype: DType, threads: int, step: int) -> Any:
    """Return a device function that adds up a thread's share of a row, `step` neighbours loaded together."""
    kind = sum_type(dtype)
    storage = dtype.storage.type
    elements = VECTORS_PER_THREAD * vector_length(dtype.storage)
    _, load, _ = row_functions(threads, elements, step)

    @inlined
    def add(x):
        registers = cuda.local.array(elements, storage, ALIGNMENT)
        width = x.shape[1]
        total = kind(0)
        for first in range(0, width, elements * threads):
            for i in range(elements):
                registers[i] = storage(0)
            load(registers, x, cuda.blockIdx.x * width, first, width)
            for i in range(elements):
                total += widen(registers[i])
        return total

    return add


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind = sum_type(dtype)
    warps = block[0] // WARP
    vector = vector_length(dtype.storage)
    by_vectors, by_elements = (_thread_sum(dtype, block[0], step) for step in (vector, 1))
    block_sum, _ = block_functions(block[0])

    def reduce_sum(x, out):
        sums = cuda.shared.array(warps, kind, ALIGNMENT)
        total = block_sum(sums, by_vectors(x) if x.shape[1] % vector == 0 else by_elements(x))
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = narrow(total, out.dtype)

    return reduce_sum


KERNEL = CudaKernel(_make, ROW_PER_BLOCK)
