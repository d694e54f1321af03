"""One warp per row with an online softmax: keys pass once, and sums are rescaled whenever a higher score comes.

Each lane holds every 32nd number of the row, so keys and values are read as whole transactions; shuffles add
the 32 parts of a score. Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

import math

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import WARP, Block
from gpuexplore.kernels.intrinsics.warps import warp_sum
from gpuexplore.operations.attention import ROW_PER_WARP

PARTS = 8  # numbers of a row each lane holds: d is 256 at most


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes softmax(q kᵀ / √d) v of three (b, h, s, d) to `out` (b, h, s, d)."""
    kind, warps, lowest = sum_type(dtype), block[0] // WARP, sum_type(dtype)(-math.inf)

    def attention(q, k, v, out):
        asked = cuda.local.array(PARTS, kind)
        mixed = cuda.local.array(PARTS, kind)
        heads, length, depth = q.shape[1], q.shape[2], q.shape[3]
        lane, place = cuda.threadIdx.x % WARP, cuda.blockIdx.x * warps + cuda.threadIdx.x // WARP
        inside = place < q.shape[0] * heads * length
        place = place if inside else 0  # every thread takes part in the sums of a warp: the simulator waits for all
        image, head, row = place // length // heads, place // length % heads, place % length
        scale = kind(1) / math.sqrt(kind(depth))
        for part in range(PARTS):
            i = part * WARP + lane
            asked[part] = widen(q[image, head, row, i]) * scale if i < depth else kind(0)
            mixed[part] = kind(0)
        highest, total = lowest, kind(0)
        for key in range(length):
            score = kind(0)
            for part in range(PARTS):
                i = part * WARP + lane
                if i < depth:
                    score += asked[part] * widen(k[image, head, key, i])
            score = warp_sum(score)
            higher = max(highest, score)
            kept, weight = math.exp(highest - higher), math.exp(score - higher)
            highest, total = higher, total * kept + weight
            for part in range(PARTS):
                i = part * WARP + lane
                if i < depth:
                    mixed[part] = mixed[part] * kept + weight * widen(v[image, head, key, i])
        for part in range(PARTS):
            i = part * WARP + lane
            if inside and i < depth:
                out[image, head, row, i] = narrow(mixed[part] / total, out.dtype)

    return attention


KERNEL = CudaKernel(make, ROW_PER_WARP)
build = KERNEL.build
