"""One thread per row, as the notebook has it, and one warp per row."""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, narrow, sum_type, widen
from gpuexplore.kernels.device_functions import VECTORS_PER_THREAD, row_functions
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, vector_length
from gpuexplore.kernels.intrinsics.warps import warp_sum
from gpuexplore.operations.matvec import ROW_PER_THREAD, ROW_PER_WARP


def _make_naive(dtype: DType, block: Block) -> Kernel:
    """Return the notebook's kernel, one thread per row: neighbouring threads read a whole row apart."""
    kind = sum_type(dtype)

    def matvec(a, x, out):
        row = cuda.grid(1)
        if row < out.size:
            total = kind(0)
            for j in range(x.size):
                total += widen(a[row, j]) * widen(x[j])
            out[row] = narrow(total, out.dtype)

    return matvec


def _lane_sum(dtype: DType, step: int) -> Any:
    """Return a device function that adds up a lane's share of a row times x, `step` neighbours loaded together."""
    kind = sum_type(dtype)
    storage = dtype.storage.type
    elements = VECTORS_PER_THREAD * vector_length(dtype.storage)
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


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel with one warp per row: shuffles add the sums of its threads.

    Each has four loads of 16 bytes of the matrix in flight. Rows that do not start at a multiple of 16 bytes are read
    element by element, still side by side.
    """
    kind = sum_type(dtype)
    warps = block[0] // WARP
    vector = vector_length(dtype.storage)
    by_vectors, by_elements = (_lane_sum(dtype, step) for step in (vector, 1))

    def matvec(a, x, out):
        row = cuda.blockIdx.x * warps + cuda.threadIdx.x // WARP
        total = kind(0)
        if row < out.size:
            total = by_vectors(a, x, row) if x.size % vector == 0 else by_elements(a, x, row)
        total = warp_sum(total)  # all lanes have to be there
        if row < out.size and cuda.threadIdx.x % WARP == 0:
            out[row] = narrow(total, out.dtype)

    return matvec


NAIVE = CudaKernel(_make_naive, ROW_PER_THREAD)
KERNEL = CudaKernel(_make, ROW_PER_WARP)
