"""Device functions of CUDA kernels that take one row per block, and at the end of those that take pairs of elements.

A thread holds up to four vectors of 16 bytes, whose loads are in flight together, and a block as many for each of its
threads: a stretch of the row. A row of one stretch passes through memory once; of a longer one a kernel keeps the last
stretch. Rows of no whole number of vectors do not start at multiples of 16 bytes: they are loaded by elements,
neighbouring threads' side by side. A kernel is compiled for both and asks once which it is.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import inlined
from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, read, store_vector, vector_length, write
from gpuexplore.kernels.intrinsics.warps import warp_max, warp_sum

AHEAD = 2  # loads of each vector in flight

VECTORS = 4  # that a thread holds at most
HELD = 16  # elements that a thread holds at most where it computes a number of each
HELD_BY_BLOCK = 4096  # the same of a block, if that is a vector for each thread: 1024 threads have 64 registers each


def held_elements(dtype: DType, threads: int) -> int:
    """Return how many elements each of the `threads` of a block holds that computes a number of each."""
    vector = vector_length(dtype.storage)
    return max(vector, min(VECTORS * vector, HELD, HELD_BY_BLOCK // threads))


def row_functions(threads: int, elements: int, step: int) -> tuple[Any, Any, Any]:
    """Return device functions for a block of `threads`, a power of two, of which each holds `elements`.

    Args:
        threads: of the block.
        elements: that a thread holds; place i is in the row where `i // step * step < count(...)`.
        step: neighbours that are loaded together, those of a vector or 1.

    Returns:
        `count(first, width)`: how many of the elements that this thread holds of the stretch from column `first` on
        lie in a row of `width`;
        `load(held, x, start, first, width)`: load them of the row that begins at element `start`;
        `store(out, held, start, first, width)`: store them.
    """
    stride, last = threads * step, threads - 1
    bits = stride.bit_length() - 1

    @inlined
    def count(first, width):
        ahead = width - first - (cuda.threadIdx.x & last) * step  # & says that it is not negative
        return min(max((ahead + stride - 1) >> bits, 0), elements // step) * step

    @inlined
    def load(held, x, start, first, width):
        inside, place = count(first, width), start + first + (cuda.threadIdx.x & last) * step
        for i in range(0, elements, step):
            if i < inside:
                if step == 1:
                    held[i] = read(x, place + i * threads)
                else:
                    load_vector(held, i, x, place + i * threads)

    @inlined
    def store(out, held, start, first, width):
        inside, place = count(first, width), start + first + (cuda.threadIdx.x & last) * step
        for i in range(0, elements, step):
            if i < inside:
                if step == 1:
                    write(out, place + i * threads, held[i])
                else:
                    store_vector(out, place + i * threads, held, i)

    return count, load, store


def block_functions(threads: int) -> tuple[Any, Any]:
    """Return device functions `sum(parts, value)` and `max(parts, value)` over a block, for all of its threads.

    Shuffles join the values of a warp; `parts` (threads / 32) in shared memory, which each call needs its own of, those
    of the warps.
    """
    warps, last = threads // WARP, threads - 1

    @inlined
    def share(parts, joined):
        thread = cuda.threadIdx.x & last
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


# Two vectors made into one, element by element: what the CUDA kernels of these operations have in common.


def pair_walker(dtype: DType, combine: Any) -> Any:
    """Return a device function that writes `combine` of the elements of a (n) and b (n) to `out` (n).

    The grid strides through the vectors, each thread two vectors of 16 bytes of both at a time before it stores them: a
    load that is followed by a store waits for it, for the compiler cannot know that they do not overlap.
    """
    storage, vector = dtype.storage.type, vector_length(dtype.storage)
    elements = AHEAD * vector

    @inlined
    def join(left, right, count):
        for i in range(count):
            left[i] = narrow(combine(widen(left[i]), widen(right[i])), left.dtype)

    @inlined
    def walk(a, b, out):
        left = cuda.local.array(elements, storage, ALIGNMENT)
        right = cuda.local.array(elements, storage, ALIGNMENT)
        thread, stride = cuda.grid(1), cuda.gridsize(1) * vector
        rest = out.size % vector
        i, end = thread * vector, out.size - rest
        while i + stride < end:
            for each in range(AHEAD):
                load_vector(left, each * vector, a, i + each * stride)
                load_vector(right, each * vector, b, i + each * stride)
            join(left, right, elements)
            for each in range(AHEAD):
                store_vector(out, i + each * stride, left, each * vector)
            i += AHEAD * stride
        if i < end:
            load_vector(left, 0, a, i)
            load_vector(right, 0, b, i)
            join(left, right, vector)
            store_vector(out, i, left, 0)
        if thread < rest:
            out[end + thread] = narrow(combine(widen(a[end + thread]), widen(b[end + thread])), out.dtype)

    return walk
