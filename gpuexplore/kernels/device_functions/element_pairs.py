"""Two vectors made into one, element by element: what the CUDA kernels of these operations have in common."""

from typing import Any

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import inlined
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, store_vector, vector_length

AHEAD = 2  # loads of each vector in flight


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
