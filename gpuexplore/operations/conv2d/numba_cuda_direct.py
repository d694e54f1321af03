"""One thread per output: neighbouring threads read neighbouring numbers of the image, and all the same weight.

Nothing is kept in shared memory: the r × r neighbourhoods overlap, and the caches catch the repetitions.
"""

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.conv2d import OUTPUT_PER_THREAD


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes x (b, c, h, w) * weights (o, c, r, r) to `out` (b, o, h, w)."""
    kind = sum_type(dtype)

    def conv2d(x, weights, out):
        place, r = cuda.grid(1), weights.shape[2]
        if place >= out.size:
            return
        height, width = out.shape[2], out.shape[3]
        plane = place // (height * width)
        image, channel = plane // out.shape[1], plane % out.shape[1]
        row, column = place // width % height, place % width
        total = kind(0)
        for c in range(x.shape[1]):
            for i in range(max(0, r // 2 - row), min(r, height + r // 2 - row)):
                for j in range(max(0, r // 2 - column), min(r, width + r // 2 - column)):
                    value = widen(x[image, c, row + i - r // 2, column + j - r // 2])
                    total += value * widen(weights[channel, c, i, j])
        out[image, channel, row, column] = narrow(total, out.dtype)

    return conv2d


KERNEL = CudaKernel(make, OUTPUT_PER_THREAD)
build = KERNEL.build
