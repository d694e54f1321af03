"""A CUDA kernel in Numba: threads stride through the vectors together, so neighbours read neighbours."""

from numba import cuda

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import GRID_STRIDE, Block
from gpuexplore.operations.triad import FACTOR


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype`."""
    factor = DTYPES[dtype.accumulate].storage.type(FACTOR)  # a Python float would make it a double

    def triad(a, b, out):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = narrow(widen(a[i]) + factor * widen(b[i]), out.dtype)

    return triad


KERNEL = CudaKernel(make, GRID_STRIDE)
build = KERNEL.build
