"""The first step of the ladder: one thread per element, and neighbouring threads in different rows.

A warp reads 32 rows of A and writes 32 rows of the product at a time: 32 transactions where 1 to 4 would do.
"""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.matmul import ROWS_ALONG_X


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    kind = sum_type(dtype)

    def matmul(a, b, out):
        row, column = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            total = kind(0)
            for term in range(a.shape[1]):
                total += widen(a[row, term]) * widen(b[term, column])
            out[row, column] = narrow(total, out.dtype)

    return matmul


KERNEL = CudaKernel(make, ROWS_ALONG_X)
build = KERNEL.build
