"""One thread per element, as the notebook has it, and a grid that strides through the vectors."""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import (
    ELEMENT_PER_THREAD,
    GRID_STRIDE,
    Block,
    CudaKernel,
    Kernel,
    inlined,
    narrow,
    widen,
)
from gpuexplore.kernels.device_functions import pairwise_loop


def _make_naive(dtype: DType, block: Block) -> Kernel:
    """Return the notebook's kernel (which has blocks of 1024): one thread per element."""

    def vector_add(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = narrow(widen(a[i]) + widen(b[i]), out.dtype)

    return vector_add


@inlined
def _add(left: Any, right: Any) -> Any:
    """Return the sum of two elements."""
    return left + right


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel whose grid strides: two loads of 16 bytes from both vectors before a thread stores.

    One instruction loads four fp32 (eight 16-bit numbers, two fp64), so that fewer threads hide more of memory's
    latency, and a grid of bounded size pays for its blocks once.
    """
    combine_all = pairwise_loop(dtype, _add)

    def vector_add(a, b, out):
        combine_all(a, b, out)

    return vector_add


NAIVE = CudaKernel(_make_naive, ELEMENT_PER_THREAD)
KERNEL = CudaKernel(_make, GRID_STRIDE)
