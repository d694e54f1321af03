"""A Triton kernel: one program per row, in pieces of up to 4096 elements, with the maximum and the sum kept online."""

from collections.abc import Callable, Sequence
from typing import Any

import triton
import triton.language as tl

from gpuexplore.core.dtypes import DTYPES, DType

LONGEST_PIECE = 4096


@triton.jit
def _softmax(x, out, n, PIECE: tl.constexpr, KIND: tl.constexpr):
    """Write the softmax of the rows of (m, n) to `out` (m, n)."""
    start_of_row = tl.program_id(0).to(tl.int64) * n
    offsets = tl.arange(0, PIECE)
    top = tl.full([], float("-inf"), KIND)
    total = tl.full([], 0.0, KIND)
    for start in range(0, n, PIECE):
        values = tl.load(x + start_of_row + start + offsets, mask=start + offsets < n, other=float("-inf")).to(KIND)
        larger = tl.maximum(top, tl.max(values, axis=0))
        total = total * tl.exp(top - larger) + tl.sum(tl.exp(values - larger), axis=0)
        top = larger
    for start in range(0, n, PIECE):
        inside = start + offsets < n
        values = tl.load(x + start_of_row + start + offsets, mask=inside, other=float("-inf")).to(KIND)
        shares = tl.exp(values - top) / total
        tl.store(out + start_of_row + start + offsets, shares.to(out.dtype.element_ty), mask=inside)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the softmax of the rows of (m, n) into `out` (m, n)."""
    (x,) = inputs
    m, n = x.shape
    piece = min(triton.next_power_of_2(n), LONGEST_PIECE)
    kind = getattr(tl, DTYPES[dtype.accumulate].array_name)
    return lambda: _softmax[(m,)](x, out, n, piece, kind, num_warps=4 if piece < LONGEST_PIECE else 8)
