"""A grid that strides through the vectors, each thread two loads of 16 bytes from both before it stores."""

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import GRID_STRIDE, Block, CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.device_functions import pairwise_loop
from gpuexplore.operations.triad import FACTOR


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype`."""
    factor = sum_type(dtype)(FACTOR)  # a Python float would make it a double

    @inlined
    def add(left, right):
        return left + factor * right

    combine_all = pairwise_loop(dtype, add)

    def triad(a, b, out):
        combine_all(a, b, out)

    return triad


KERNEL = CudaKernel(_make, GRID_STRIDE)
