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
from gpuexplore.kernels.cuda_kernel import (
    ROW_PER_BLOCK,
    WARP,
    Block,
    CudaKernel,
    Kernel,
    inlined,
    narrow,
    sum_type,
    widen,
)
from gpuexplore.kernels.device_functions import block_functions, elements_per_thread, row_functions
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, vector_length


def _exponential_sum(elements: int, step: int) -> Any:
    """Return a device function that takes exponentials of the elements in `registers`, and adds them to `total`."""

    @inlined
    def add_exponentials(weights, registers, maximum, inside, total):
        for i in range(0, elements, step):
            if i < inside:
                for each in range(i, i + step):
                    weights[each] = math.exp(widen(registers[each]) - maximum)
                    total += weights[each]
        return total

    return add_exponentials


def _row_softmax(dtype: DType, threads: int, step: int) -> Any:
    """Return a device function that writes one row, of which `step` neighbours are loaded together."""
    kind = sum_type(dtype)
    storage = dtype.storage.type
    elements = elements_per_thread(dtype, threads)
    stretch = elements * threads
    beyond = kind(-math.inf)  # the second for elements beyond the row
    lowest = np.finfo(kind).min  # not -inf, for a thread without elements would subtract it from itself
    count, load, store = row_functions(threads, elements, step)
    block_sum, block_max = block_functions(threads)
    add_exponentials = _exponential_sum(elements, step)

    @inlined
    def softmax_row(x, out, warp_maxima, sums):
        registers = cuda.local.array(elements, storage, ALIGNMENT)
        weights = cuda.local.array(elements, kind, ALIGNMENT)
        width = x.shape[1]
        start = cuda.blockIdx.x * width
        maximum = lowest
        total = kind(0)
        inside = 0
        for first in range(0, width, stretch):
            for i in range(elements):
                registers[i] = narrow(beyond, x.dtype)
            load(registers, x, start, first, width)
            new_maximum = maximum
            inside = count(first, width)
            for i in range(elements):
                new_maximum = max(new_maximum, widen(registers[i]))
            total = add_exponentials(weights, registers, new_maximum, inside, total * math.exp(maximum - new_maximum))
            maximum = new_maximum
        row_maximum = block_max(warp_maxima, maximum)
        factor = math.exp(maximum - row_maximum)
        scale = kind(1) / block_sum(sums, total * factor)
        factor *= scale
        first = (width - 1) // stretch * stretch
        while True:
            for i in range(0, elements, step):
                if i < inside:
                    for each in range(i, i + step):
                        registers[each] = narrow(weights[each] * factor, out.dtype)
            store(out, registers, start, first, width)
            first -= stretch
            if first < 0:
                break
            load(registers, x, start, first, width)
            factor = scale
            inside = elements
            add_exponentials(weights, registers, row_maximum, inside, total)

    return softmax_row


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind = sum_type(dtype)
    warps = block[0] // WARP
    vector = vector_length(dtype.storage)
    by_vectors, by_elements = (_row_softmax(dtype, block[0], step) for step in (vector, 1))

    def softmax(x, out):
        warp_maxima = cuda.shared.array(warps, kind, ALIGNMENT)
        sums = cuda.shared.array(warps, kind, ALIGNMENT)
        if x.shape[1] % vector == 0:
            by_vectors(x, out, warp_maxima, sums)
        else:
            by_elements(x, out, warp_maxima, sums)

    return softmax


KERNEL = CudaKernel(_make, ROW_PER_BLOCK, resident_threads=lambda _: 768)
