"""A CUDA kernel in Numba: the threads of a block stride through one row, then add their sums in a tree.

Sums are kept in fp32 (fp64 for fp64); a block of 32 threads is one warp per row.
"""

from numba import cuda

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import ROW_PER_BLOCK, Block


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind, threads = DTYPES[dtype.accumulate].storage.type, block[0]

    def reduce_sum(x, out):
        sums = cuda.shared.array(threads, kind)
        row, thread = cuda.blockIdx.x, cuda.threadIdx.x
        total = kind(0)
        for j in range(thread, x.shape[1], threads):
            total += widen(x[row, j])
        sums[thread] = total
        cuda.syncthreads()
        half = threads // 2
        while half:
            if thread < half:
                sums[thread] += sums[thread + half]
            cuda.syncthreads()
            half //= 2
        if thread == 0:
            out[row] = narrow(sums[0], out.dtype)

    return reduce_sum


KERNEL = CudaKernel(make, ROW_PER_BLOCK)
build = KERNEL.build
