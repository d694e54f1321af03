"""A CUDA kernel in Numba: the threads of a block stride through one row twice.

In the first pass each thread keeps the largest element so far and the sum of exponentials below it, which
grows smaller with every larger element; a tree in shared memory joins the pairs. M. Milakov, N. Gimelshein,
"Online normalizer calculation for softmax", https://arxiv.org/abs/1805.02867. Sums are kept in fp32 (fp64
for fp64); a block of 32 threads is one warp per row.
"""

import math

import numpy as np
from numba import cuda

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import ROW_PER_BLOCK, Block


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind, threads = DTYPES[dtype.accumulate].storage.type, block[0]
    lowest = np.finfo(kind).min  # not -inf, for a thread without elements would subtract it from itself

    def softmax(x, out):
        tops = cuda.shared.array(threads, kind)
        sums = cuda.shared.array(threads, kind)
        row, thread = cuda.blockIdx.x, cuda.threadIdx.x
        top, total = lowest, kind(0)
        for j in range(thread, x.shape[1], threads):
            larger = max(top, widen(x[row, j]))
            total = total * math.exp(top - larger) + math.exp(widen(x[row, j]) - larger)
            top = larger
        tops[thread], sums[thread] = top, total
        cuda.syncthreads()
        half = threads // 2
        while half:
            if thread < half:
                larger = max(tops[thread], tops[thread + half])
                mine = sums[thread] * math.exp(tops[thread] - larger)
                sums[thread] = mine + sums[thread + half] * math.exp(tops[thread + half] - larger)
                tops[thread] = larger
            cuda.syncthreads()
            half //= 2
        for j in range(thread, x.shape[1], threads):
            out[row, j] = narrow(math.exp(widen(x[row, j]) - tops[0]) / sums[0], out.dtype)

    return softmax


KERNEL = CudaKernel(make, ROW_PER_BLOCK)
build = KERNEL.build
