"""One warp per row: its threads read 512 neighbouring bytes at a time, and shuffles add their 32 sums.

Rows that do not start at a multiple of 16 bytes are read element by element, still side by side.
"""

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import WARP, Block
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, read, vector_length
from gpuexplore.kernels.intrinsics.warps import warp_sum
from gpuexplore.operations.matvec import ROW_PER_WARP


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, n) @ (n) to `out` (m)."""
    kind, storage, warps = sum_type(dtype), dtype.storage.type, block[0] // WARP
    vector = vector_length(storage)

    def matvec(a, x, out):
        terms = cuda.local.array(vector, storage, ALIGNMENT)
        factors = cuda.local.array(vector, storage, ALIGNMENT)
        lane, row = cuda.threadIdx.x % WARP, cuda.blockIdx.x * warps + cuda.threadIdx.x // WARP
        total = kind(0)
        if row < out.size:
            start, aligned = row * x.size, x.size if x.size % vector == 0 else 0
            for j in range(lane * vector, aligned, WARP * vector):
                load_vector(terms, 0, a, start + j)
                load_vector(factors, 0, x, j)
                for each in range(vector):
                    total += widen(terms[each]) * widen(factors[each])
            for j in range(aligned + lane, x.size, WARP):
                total += widen(read(a, start + j)) * widen(read(x, j))
        total = warp_sum(total)  # all lanes have to be there
        if row < out.size and lane == 0:
            out[row] = narrow(total, out.dtype)

    return matvec


KERNEL = CudaKernel(make, ROW_PER_WARP)
build = KERNEL.build
