"""Patches to columns, then one BLAS call for each strip of an image; 16-bit formats are widened by the copy.

The copies are part of the work and are timed: they are what this way of convolving costs.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gpuexplore.core.dtypes import DTYPES, DType

PIXELS = 8192  # of a strip: its columns and sums stay in the caches for usual channel counts


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the convolution of x (b, c, h, w) with weights (o, c, r, r) into `out` (b, o, h, w)."""
    x, weights = inputs
    kind = DTYPES[dtype.accumulate].storage
    pad = weights.shape[-1] // 2
    padded = np.zeros((*x.shape[:2], x.shape[2] + 2 * pad, x.shape[3] + 2 * pad), kind)
    inside = padded[:, :, pad : pad + x.shape[2], pad : pad + x.shape[3]]
    wide = np.empty((len(weights), weights[0].size), kind)
    strips = list(_strips(padded, weights.shape, out))

    def run() -> None:
        inside[...] = x
        wide[...] = weights.reshape(wide.shape)
        for windows, patches, sums, part in strips:
            patches[...] = windows
            np.matmul(wide, patches.reshape(wide.shape[1], -1), out=sums.reshape(len(wide), -1))
            part[...] = sums

    return run


def _strips(padded: Any, kernel: tuple[int, ...], out: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield for each strip of rows of an image: its windows, buffers for them and for their sums, its part of `out`."""
    o, c, r, _ = kernel
    height, width = out.shape[2:]
    most = min(height, max(1, PIXELS // width))
    patches = np.empty(c * r * r * most * width, padded.dtype)
    sums = np.empty(o * most * width, padded.dtype)
    for image, top in ((image, top) for image in range(len(out)) for top in range(0, height, most)):
        rows = min(most, height - top)
        windows = sliding_window_view(padded[image, :, top : top + rows + r - 1], (r, r), axis=(1, 2))
        yield (
            windows.transpose(0, 3, 4, 1, 2),
            patches[: c * r * r * rows * width].reshape(c, r, r, rows, width),
            sums[: o * rows * width].reshape(o, rows, width),
            out[image, :, top : top + rows],
        )
