"""One warp per row: its threads have four loads of 16 bytes of the matrix in flight, and shuffles add their sums.

Rows that do not start at a multiple of 16 bytes are read element by element, still side by side.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.device_functions import VECTORS_PER_THREAD, row_functions
from gpuexplore.kernels.geometry import WARP, Block
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, vector_length
from gpuexplore.kernels.intrinsics.warps import warp_sum
from gpuexplore.operations.matvec import ROW_PER_WARP


def lane_sum(dtype: DType, step: int) -> Any:
    """Return a device function that adds up a lane's share of a row times x, `step` neighbours loaded together."""
    kind, storage, elements = sum_type(dtype), dtype.storage.type, VECTORS_PER_THREAD * vector_length(dtype.storage)
    _, load, _ = row_functions(WARP, elements, step)

    @inlined
    def add(a, x, row):
        terms = cuda.local.array(elements, storage, ALIGNMENT)
        factors = cuda.local.array(elements, storage, ALIGNMENT)
        total = kind(0)
        for first in range(0, x.size, elements * WARP):
            for i in range(elements):
                terms[i] = storage(0)
                factors[i] = storage(0)
            load(terms, a, row * x.size, first, x.size)
            load(factors, x, 0, first, x.size)
            for i in range(elements):
                total += widen(terms[i]) * widen(factors[i])
        return total

    return add


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, n) @ (n) to `out` (m)."""
    kind, warps, vector = sum_type(dtype), block[0] // WARP, vector_length(dtype.storage)
    by_vectors, by_elements = (lane_sum(dtype, step) for step in (vector, 1))

    def matvec(a, x, out):
        row, total = cuda.blockIdx.x * warps + cuda.threadIdx.x // WARP, kind(0)
        if row < out.size:
            total = by_vectors(a, x, row) if x.size % vector == 0 else by_elements(a, x, row)
        total = warp_sum(total)  # all lanes have to be there
        if row < out.size and cuda.threadIdx.x % WARP == 0:
            out[row] = narrow(total, out.dtype)

    return matvec


KERNEL = CudaKernel(make, ROW_PER_WARP)
build = KERNEL.build
