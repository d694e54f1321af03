"""A CUDA kernel in Numba: one block per row, whose threads keep their elements in registers until they know the spread.

A thread takes mean and squared deviations of each stretch by themselves and joins them with those before, so that
nothing cancels: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
sample variances", 1979. Shuffles and shared memory join the threads. Of a row longer than the registers of the
block the last stretch is kept; the others are read again, the newest first. Sums are kept in fp32 (fp64 for fp64).
"""

import math
from typing import Any

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
from gpuexplore.operations.layer_norm import EPSILON


def _spread_function(dtype: DType, elements: int, step: int) -> Any:
    """Return a device function that returns the mean of the elements in `registers` and the squares around it."""
    zero = sum_type(dtype)(0)

    @inlined
    def spread(registers, inside, added):
        total = zero
        moment = zero
        for i in range(elements):
            total += widen(registers[i])
        centre = total / added
        for i in range(elements):
            apart = widen(registers[i]) - centre if i // step * step < inside else zero
            moment += apart * apart
        return centre, moment

    return spread


def _row_norm(dtype: DType, threads: int, step: int) -> Any:
    """Return a device function that writes one row, of which `step` neighbours are loaded together."""
    kind = sum_type(dtype)
    storage = dtype.storage.type
    elements = elements_per_thread(dtype, threads)
    zero = kind(0)
    one = kind(1)
    epsilon = kind(EPSILON)  # Python floats would make doubles of what they touch
    count, load, store = row_functions(threads, elements, step)
    block_sum, _ = block_functions(threads)
    spread = _spread_function(dtype, elements, step)
    stretch = elements * threads

    @inlined
    def normalise(x, weight, bias, out, sums, squares):
        registers = cuda.local.array(elements, storage, ALIGNMENT)
        weights = cuda.local.array(elements, storage, ALIGNMENT)
        biases = cuda.local.array(elements, storage, ALIGNMENT)
        width = x.shape[1]
        start = cuda.blockIdx.x * width
        seen = zero
        mean = zero
        moment = zero
        for first in range(0, width, stretch):
            for i in range(elements):
                registers[i] = storage(0)
            load(registers, x, start, first, width)
            inside = count(first, width)
            if inside > 0:
                added = kind(inside)
                centre, squares_here = spread(registers, inside, added)
                moment += squares_here
                share = added / (seen + added)
                apart = centre - mean
                moment += apart * apart * seen * share
                mean += apart * share
                seen += added
        row_mean = block_sum(sums, mean * seen) / kind(width)
        apart = mean - row_mean
        scale = one / math.sqrt(block_sum(squares, moment + apart * apart * seen) / kind(width) + epsilon)
        first = (width - 1) // stretch * stretch
        while True:
            load(weights, weight, 0, first, width)
            load(biases, bias, 0, first, width)
            inside = count(first, width)
            for i in range(0, elements, step):
                if i < inside:
                    for each in range(i, i + step):
                        normal = (widen(registers[each]) - row_mean) * scale
                        registers[each] = narrow(normal * widen(weights[each]) + widen(biases[each]), out.dtype)
            store(out, registers, start, first, width)
            first -= stretch
            if first < 0:
                break
            load(registers, x, start, first, width)

    return normalise


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel of `dtype` for a block of `block` threads, a power of two."""
    kind = sum_type(dtype)
    warps = block[0] // WARP
    vector = vector_length(dtype.storage)
    by_vectors, by_elements = (_row_norm(dtype, block[0], step) for step in (vector, 1))

    def layer_norm(x, weight, bias, out):
        sums = cuda.shared.array(warps, kind, ALIGNMENT)
        squares = cuda.shared.array(warps, kind, ALIGNMENT)
        if x.shape[1] % vector == 0:
            by_vectors(x, weight, bias, out, sums, squares)
        else:
            by_elements(x, weight, bias, out, sums, squares)

    return layer_norm


KERNEL = CudaKernel(_make, ROW_PER_BLOCK)
