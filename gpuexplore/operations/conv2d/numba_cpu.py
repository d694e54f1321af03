"""A parallel CPU loop in Numba over strips of the image: patches become columns that stay in the cache."""

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import COLUMNS, ROWS, multiply_rows, widen


@njit(cache=True)
def _gather(image, top, r, patches):
    """Copy the patches around the rows from `top` on of `image` (c, h, w) to `patches` (c·r·r, rows, w)."""
    height = image.shape[1]
    width = image.shape[2]
    for term in range(patches.shape[0]):
        channel = term // (r * r)
        down = term // r % r - r // 2
        right = term % r - r // 2
        first = min(width, max(0, -right))
        last = max(0, min(width, width - right))
        for row in range(patches.shape[1]):
            line = patches[term, row]
            y = top + row + down
            line[:] = 0
            if 0 <= y < height:
                source = image[channel, y]
                for column in range(first, last):
                    line[column] = widen(source[column + right])


@njit(parallel=True, cache=True)
def _conv2d(x, weights, out, rows, zero):
    """Write x (b, c, h, w) * weights (o, c, r, r) to `out` (b, o, h·w), `rows` rows of an image at a time."""
    height = x.shape[2]
    width = x.shape[3]
    terms = weights[0].size
    flat_weights = weights.reshape(weights.shape[0], terms)
    strips = (height + rows - 1) // rows
    for task in prange(x.shape[0] * strips):
        image = task // strips
        top = task % strips * rows
        bottom = min(height, top + rows)
        patches = np.empty((terms, bottom - top, width), zero.dtype)
        _gather(x[image], top, weights.shape[2], patches)
        columns = patches.reshape(terms, (bottom - top) * width)
        for first in range(0, out.shape[1], ROWS):
            last = min(out.shape[1], first + ROWS)
            part = out[image, first:last, top * width : bottom * width]
            multiply_rows(flat_weights[first:last], columns, part, zero)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the convolution of x (b, c, h, w) with weights (o, c, r, r) into `out` (b, o, h, w)."""
    x, weights = inputs
    height, width = x.shape[2:]
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    rows = max(1, min(COLUMNS // width, -(-height // numba.get_num_threads())))
    flat = out.reshape(*out.shape[:2], height * width)
    return lambda: _conv2d(x, weights, flat, rows, zero)
