"""One thread per row, the notebook's kernel: neighbouring threads read a whole row apart."""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.matvec import ROW_PER_THREAD


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, n) @ (n) to `out` (m)."""
    kind = sum_type(dtype)

    def matvec(a, x, out):
        row = cuda.grid(1)
        if row < out.size:
            total = kind(0)
            for j in range(x.size):
                total += widen(a[row, j]) * widen(x[j])
            out[row] = narrow(total, out.dtype)

    return matvec


KERNEL = CudaKernel(make, ROW_PER_THREAD)
build = KERNEL.build
