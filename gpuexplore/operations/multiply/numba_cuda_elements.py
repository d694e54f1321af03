"""One thread per element, the matrices as lines."""

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, Block


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes the element-wise product of (n) and (n) to `out` (n)."""

    def multiply(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = narrow(widen(a[i]) * widen(b[i]), out.dtype)

    return multiply


KERNEL = CudaKernel(make, ELEMENT_PER_THREAD, flat=True)
build = KERNEL.build
