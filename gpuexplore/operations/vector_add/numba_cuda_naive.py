"""One thread per element, the notebook's kernel (which has blocks of 1024)."""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, Block


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (n) + (n) to `out` (n)."""

    def vector_add(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = narrow(widen(a[i]) + widen(b[i]), out.dtype)

    return vector_add


KERNEL = CudaKernel(make, ELEMENT_PER_THREAD)
build = KERNEL.build
