"""The scale of roundings inside an element: the size of its terms, for it is small itself where they cancel.

Where terms t of either sign are added, partial sums are of the size of √Σt², whatever is left in the end, and each
rounding of one adds an error relative to that. Each function returns such sizes for an expected output and the inputs
it was computed from; they broadcast against the output.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
NEGLIGIBLE = 1e-12  # of the whole output: what is smaller is a zero that float64 missed, and has no size of its own


def own_size(*_: Array) -> float:
    """Return 0: nothing cancels, an element's error is relative to itself."""
    return 0.0


def of_rows(expected: Array, *_: Array) -> Array:
    """Return the root mean square of each row of the output, along its last axis."""
    return norms(expected, axis=-1)[..., None] / np.sqrt(expected.shape[-1])


def of_sums(_: Array, rows: Array) -> Array:
    """Return √Σt² of sums of rows, which are their own terms."""
    return norms(rows, axis=-1)


def of_products(_: Array, left: Array, right: Array) -> Any:
    """Return |a|·|b|/√k of products (..., m, k) @ (..., k, n) or @ (k): √Σt² of terms with independent factors."""
    rows = norms(left, axis=-1) / np.sqrt(left.shape[-1])
    if right.ndim == 1:
        return np.multiply(rows, norms(right, axis=0))
    return np.multiply(rows[..., :, None], norms(right, axis=-2)[..., None, :])


def of_gradients(terms: Array, slices: Sequence[slice], shapes: Sequence[tuple[int, ...]]) -> Array:
    """Return the sizes of what a loss and gradients, which lie one after the other, were summed of.

    A gradient is a sum of products of an activation and an error, so its rows and its columns have sizes of their own;
    what is larger counts, and no less than the whole of it. One that is zero but for roundings has that of the output.
    """
    scale = np.empty_like(terms)
    whole = float(np.sqrt(np.mean(np.square(terms))))
    for part, shape in zip(slices, shapes, strict=True):
        square = np.square(terms[part]).reshape(shape[0], -1)
        lines = np.maximum(square.mean(axis=1, keepdims=True), square.mean(axis=0, keepdims=True))
        is_zero = not square.mean() > (NEGLIGIBLE * whole) ** 2
        scale[part] = whole if is_zero else np.sqrt(np.maximum(lines, square.mean())).ravel()
    return scale


def norms(array: Array, axis: int) -> Array:
    """Return norms along one axis, without a copy of the array."""
    moved = np.moveaxis(array, axis, -1)
    return np.sqrt(np.einsum("...i,...i->...", moved, moved))
