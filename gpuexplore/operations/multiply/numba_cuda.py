"""A grid that strides through the matrices as lines, each thread two loads of 16 bytes from both before it stores."""

from typing import Any

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import GRID_STRIDE, Block, CudaKernel, Kernel, inlined
from gpuexplore.kernels.device_functions import pairwise_loop


@inlined
def _product(left: Any, right: Any) -> Any:
    """Return the product of two elements."""
    return left * right


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes the element-wise product of (n) and (n) to `out` (n)."""
    combine_all = pairwise_loop(dtype, _product)

    def multiply(a, b, out):
        combine_all(a, b, out)

    return multiply


KERNEL = CudaKernel(_make, GRID_STRIDE, flat=True)
