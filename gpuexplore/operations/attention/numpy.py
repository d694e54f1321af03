"""Two numpy.matmul with a softmax between them, 256 rows of a head at a time, so that scores stay in the cache.

16-bit inputs are widened to fp32 in every call: scores rounded to 16 bits would be wrong by more than the
rounding of the output explains.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType

ROWS = 256


def build(inputs: Sequence[Any], out: Any, dtype: DType, *, causal: bool = False) -> Callable[[], object]:
    """Return softmax(q kᵀ / √d) v of three (b, h, s, d) into `out` (b, h, s, d)."""
    kind = DTYPES[dtype.accumulate].storage
    length, depth = out.shape[-2:]
    q, k, v, outs = (array.reshape(-1, length, depth) for array in (*inputs, out))
    asked, keys, values = (np.empty((length, depth), kind) for _ in range(3))
    scratch = np.empty(min(ROWS, length) * length, kind)
    mixed = np.empty((min(ROWS, length), depth), kind)
    later = np.triu(np.full((min(ROWS, length),) * 2, -np.inf, kind), 1) if causal else None
    scale = kind.type(depth**-0.5)

    def run() -> None:
        for head in range(len(outs)):
            asked[...] = q[head]
            keys[...] = k[head]
            values[...] = v[head]
            np.multiply(asked, scale, out=asked)
            for top in range(0, length, ROWS):
                rows = min(ROWS, length - top)
                seen = top + rows if causal else length
                scores = scratch[: rows * seen].reshape(rows, seen)
                mask = None if later is None else later[:rows, :rows]
                _attend(asked[top : top + rows], (keys[:seen], values[:seen]), scores, mixed[:rows], mask=mask)
                outs[head, top : top + rows] = mixed[:rows]

    return run


def _attend(asked: Any, keys_and_values: tuple[Any, Any], scores: Any, mixed: Any, *, mask: Any) -> None:
    """Write the attention of `asked` (rows, d) to `mixed` (rows, d), with `scores` (rows, s) as scratch memory.

    A mask is added to the scores of the last keys.
    """
    keys, values = keys_and_values
    np.matmul(asked, keys.T, out=scores)
    if mask is not None:
        scores[:, -len(mask) :] += mask
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=scores)
    np.exp(scores, out=scores)
    np.matmul(scores, values, out=mixed)
    np.divide(mixed, scores.sum(axis=1, keepdims=True), out=mixed)
