"""Device functions of CUDA kernels that take one row per block, and at the end of those that take pairs of elements.

A thread keeps up to four vectors of 16 bytes in registers, whose loads are in flight together, and a block as many for
each of its threads: a stretch of the row. A row of one stretch passes through memory once; of a longer one a kernel
keeps the last stretch. Rows of no whole number of vectors do not start at multiples of 16 bytes: they are loaded by
elements, those of neighbouring threads next to each other. A kernel is compiled for both and asks once which it is.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, inlined, narrow, widen
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, read, store_vector, vector_length, write
from gpuexplore.kernels.intrinsics.warps import warp_max, warp_sum

LOADS_IN_FLIGHT = 2  # of each vector

VECTORS_PER_THREAD = 4  # in registers at most


def elements_per_thread(dtype: DType, threads: int) -> int:
    """Return how many elements each of the `threads` of a block keeps in registers, with a number computed of each.

    They are at most 16, and 4096 of a block unless that is less than a vector: 1024 threads have 64 registers each.
    """
    vector = vector_length(dtype.storage)
    return max(vector, min(VECTORS_PER_THREAD * vector, 16, 4096 // threads))


def row_functions(threads: int, elements: int, step: int) -> tuple[Any, Any, Any]:
    """Return device functions for a block of `threads`, a power of two, of which each keeps `elements` in registers.

    Args:
        threads: of the block.
        elements: in a thread's registers; register i is in the row where `i // step * step < count(...)`.
        step: neighbours that are loaded together, those of a vector or 1.

    Returns:
        `count(first, width)`: how many of this thread's elements of the stretch from column `first` on lie in a row of
        `width`;
        `load(registers, x, start, first, width)`: load them of the row that begins at element `start`;
        `store(out, registers, start, first, width)`: store them.
    """
    stride = threads * step
    bits = stride.bit_length() - 1
    last = threads - 1

    @inlined
    def count(first, width):
        ahead = width - first - (cuda.threadIdx.x & last) * step  # & says that it is not negative
        return min(max((ahead + stride - 1) >> bits, 0), elements // step) * step

    @inlined
    def load(registers, x, start, first, width):
        inside = count(first, width)
        offset = start + first + (cuda.threadIdx.x & last) * step
        for i in range(0, elements, step):
            if i < inside:
                if step == 1:
                    registers[i] = read(x, offset + i * threads)
                else:
                    load_vector(registers, i, x, offset + i * threads)

    @inlined
    def store(out, registers, start, first, width):
        inside = count(first, width)
        offset = start + first + (cuda.threadIdx.x & last) * step
        for i in range(0, elements, step):
            if i < inside:
                if step == 1:
                    write(out, offset + i * threads, registers[i])
                else:
                    store_vector(out, offset + i * threads, registers, i)

    return count, load, store


def block_functions(threads: int) -> tuple[Any, Any]:
    """Return device functions `sum(parts, value)` and `max(parts, value)` over a block, for all of its threads.

    Shuffles join the values of a warp; `parts` (threads / 32) in shared memory, which each call needs its own of, those
    of the warps.
    """
    warps = threads // WARP

    @inlined
    def share(parts, joined):
        thread = cuda.threadIdx.x & (threads - 1)
        if thread & (WARP - 1) == 0:
            parts[thread // WARP] = joined
        cuda.syncthreads()

    @inlined
    def block_sum(parts, value):
        share(parts, warp_sum(value))
        total = parts[0]
        for warp in range(1, warps):
            total += parts[warp]
        return total

    @inlined
    def block_max(parts, value):
        share(parts, warp_max(value))
        top = parts[0]
        for warp in range(1, warps):
            top = max(top, parts[warp])
        return top

    return block_sum, block_max


# Two vectors combined into one, element by element: vector_add, multiply and triad.


def pairwise_loop(dtype: DType, combine: Any) -> Any:
    """Return a device function that writes `combine` of the elements of a (n) and b (n) to `out` (n).

    The grid strides through the vectors, each thread two vectors of 16 bytes of both at a time before it stores them: a
    load that is followed by a store waits for it, for the compiler cannot know that they do not overlap.
    """
    storage = dtype.storage.type
    vector = vector_length(dtype.storage)
    elements = LOADS_IN_FLIGHT * vector

    @inlined
    def join(left, right, count):
        for i in range(count):
            left[i] = narrow(combine(widen(left[i]), widen(right[i])), left.dtype)

    @inlined
    def combine_all(a, b, out):
        left = cuda.local.array(elements, storage, ALIGNMENT)
        right = cuda.local.array(elements, storage, ALIGNMENT)
        thread = cuda.grid(1)
        stride = cuda.gridsize(1) * vector
        rest = out.size % vector
        i = thread * vector
        end = out.size - rest
        while i + stride < end:
            for each in range(LOADS_IN_FLIGHT):
                load_vector(left, each * vector, a, i + each * stride)
                load_vector(right, each * vector, b, i + each * stride)
            join(left, right, elements)
            for each in range(LOADS_IN_FLIGHT):
                store_vector(out, i + each * stride, left, each * vector)
            i += LOADS_IN_FLIGHT * stride
        if i < end:
            load_vector(left, 0, a, i)
            load_vector(right, 0, b, i)
            join(left, right, vector)
            store_vector(out, i, left, 0)
        if thread < rest:
            out[end + thread] = narrow(combine(widen(a[end + thread]), widen(b[end + thread])), out.dtype)

    return combine_all
