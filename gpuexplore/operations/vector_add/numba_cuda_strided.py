"""A grid that strides through the vectors, each thread 16 bytes at a time.

One instruction loads four fp32 (eight 16-bit numbers, two fp64), so that more of memory's latency is hidden by fewer
threads, and a grid of bounded size pays for its blocks once.
"""

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, store_vector, vector_length
from gpuexplore.operations.vector_add import FOUR_PER_THREAD


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (n) + (n) to `out` (n)."""
    storage, vector = dtype.storage.type, vector_length(dtype.storage)

    def vector_add(a, b, out):
        left = cuda.local.array(vector, storage, ALIGNMENT)
        right = cuda.local.array(vector, storage, ALIGNMENT)
        sums = cuda.local.array(vector, storage, ALIGNMENT)
        thread, rest = cuda.grid(1), out.size % vector
        for i in range(thread * vector, out.size - rest, cuda.gridsize(1) * vector):
            load_vector(left, 0, a, i)
            load_vector(right, 0, b, i)
            for each in range(vector):
                sums[each] = narrow(widen(left[each]) + widen(right[each]), out.dtype)
            store_vector(out, i, sums, 0)
        if thread < rest:
            i = out.size - rest + thread
            out[i] = narrow(widen(a[i]) + widen(b[i]), out.dtype)

    return vector_add


KERNEL = CudaKernel(make, FOUR_PER_THREAD)
build = KERNEL.build
