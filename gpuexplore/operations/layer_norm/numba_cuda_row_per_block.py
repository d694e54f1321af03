"""A CUDA kernel in Numba: the threads of a block stride through one row three times.

Mean and variance come from trees in shared memory; after the first pass the row is read from a cache. Sums
are kept in fp32 (fp64 for fp64); a block of 32 threads is one warp per row.
"""

import math

from numba import cuda

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import ROW_PER_BLOCK, Block
from gpuexplore.operations.layer_norm import EPSILON


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind, threads = DTYPES[dtype.accumulate].storage.type, block[0]
    zero, one, epsilon = kind(0), kind(1), kind(EPSILON)  # Python floats would make doubles of what they touch

    def layer_norm(x, weight, bias, out):
        sums = cuda.shared.array(threads, kind)
        row, thread, n = cuda.blockIdx.x, cuda.threadIdx.x, kind(x.shape[1])
        mean, moment = zero, zero
        for squared in range(2):
            total = zero
            for j in range(thread, x.shape[1], threads):
                apart = widen(x[row, j]) - mean
                total += apart * apart if squared else apart
            sums[thread] = total
            cuda.syncthreads()
            half = threads // 2
            while half:
                if thread < half:
                    sums[thread] += sums[thread + half]
                cuda.syncthreads()
                half //= 2
            moment = sums[0] / n
            cuda.syncthreads()  # until every thread has read it
            mean = mean if squared else moment
        scale = one / math.sqrt(moment + epsilon)
        for j in range(thread, x.shape[1], threads):
            normal = (widen(x[row, j]) - mean) * scale
            out[row, j] = narrow(normal * widen(weight[j]) + widen(bias[j]), out.dtype)

    return layer_norm


KERNEL = CudaKernel(make, ROW_PER_BLOCK)
build = KERNEL.build
