"""A CUDA kernel in Numba: one block per row, whose threads keep their elements in registers while they join their sums.

Each thread finds the largest of its elements and the sum of exponentials below it, which grows smaller with every
larger one; shuffles and shared memory join first the largest, then the sums. M. Milakov, N. Gimelshein, "Online
normalizer calculation for softmax", https://arxiv.org/abs/1805.02867. An element takes one exponential, and a
product where a division would bring a call. Of a row longer than the registers of the block the last stretch is kept;
the others are read and raised again, the newest first. Sums are kept in fp32 (fp64 for fp64).
"""

import math
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.device_functions import block_functions, held_elements, row_functions
from gpuexplore.kernels.geometry import ROW_PER_BLOCK, WARP, Block
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, vector_length


def weigher(elements: int, step: int) -> Any:
    """Return a device function that takes exponentials of what a thread holds, and adds them to `total`."""

    @inlined
    def weigh(weights, held, top, inside, total):
        for i in range(0, elements, step):
            if i < inside:
                for each in range(i, i + step):
                    weights[each] = math.exp(widen(held[each]) - top)
                    total += weights[each]
        return total

    return weigh


def row_softmax(dtype: DType, threads: int, step: int) -> Any:
    """Return a device function that writes one row, of which `step` neighbours are loaded together."""
    kind, storage, elements = sum_type(dtype), dtype.storage.type, held_elements(dtype, threads)
    stretch, beyond = elements * threads, kind(-math.inf)  # the second in place of elements that the row does not have
    lowest = np.finfo(kind).min  # not -inf, for a thread without elements would subtract it from itself
    count, load, store = row_functions(threads, elements, step)
    block_sum, block_max = block_functions(threads)
    weigh = weigher(elements, step)

    @inlined
    def soften(x, out, tops, sums):
        held = cuda.local.array(elements, storage, ALIGNMENT)
        weights = cuda.local.array(elements, kind, ALIGNMENT)
        width = x.shape[1]
        start, top, total, inside = cuda.blockIdx.x * width, lowest, kind(0), 0
        for first in range(0, width, stretch):
            for i in range(elements):
                held[i] = narrow(beyond, x.dtype)
            load(held, x, start, first, width)
            larger, inside = top, count(first, width)
            for i in range(elements):
                larger = max(larger, widen(held[i]))
            total = weigh(weights, held, larger, inside, total * math.exp(top - larger))
            top = larger
        row_top = block_max(tops, top)
        factor = math.exp(top - row_top)
        scale = kind(1) / block_sum(sums, total * factor)
        factor *= scale
        first = (width - 1) // stretch * stretch
        while True:
            for i in range(0, elements, step):
                if i < inside:
                    for each in range(i, i + step):
                        held[each] = narrow(weights[each] * factor, out.dtype)
            store(out, held, start, first, width)
            first -= stretch
            if first < 0:
                break
            load(held, x, start, first, width)
            factor, inside = scale, elements
            weigh(weights, held, row_top, inside, total)

    return soften


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind, warps, vector = sum_type(dtype), block[0] // WARP, vector_length(dtype.storage)
    by_vectors, by_elements = (row_softmax(dtype, block[0], step) for step in (vector, 1))

    def softmax(x, out):
        tops, sums = cuda.shared.array(warps, kind, ALIGNMENT), cuda.shared.array(warps, kind, ALIGNMENT)
        if x.shape[1] % vector == 0:
            by_vectors(x, out, tops, sums)
        else:
            by_elements(x, out, tops, sums)

    return softmax


KERNEL = CudaKernel(make, ROW_PER_BLOCK, resident_threads=lambda _: 768)
build = KERNEL.build
