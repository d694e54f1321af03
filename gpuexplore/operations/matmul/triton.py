"""A Triton kernel: each program computes a 128 x 128 tile of the product by tl.dot, three tiles of A and B under way.

tl.dot runs on tensor cores for 16-bit formats and tf32, on the ordinary units for fp32. Programs go through the
tiles in groups of eight rows, so that neighbours find each other's tiles of A and B in the L2 cache. The sizes are
fixed: tuned ones would make the first call minutes long.
"""

from collections.abc import Callable, Sequence
from typing import Any

import triton
import triton.language as tl

from gpuexplore.core.dtypes import DType

TILE = 128
GROUP = 8


@triton.jit
def _matmul(a, b, out, m, n, k, TILE: tl.constexpr, TERMS: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr):
    """Write (m, k) @ (k, n) to `out` (m, n)."""
    in_group = GROUP * tl.cdiv(n, TILE)
    first = tl.program_id(0) // in_group * GROUP
    height = min(tl.cdiv(m, TILE) - first, GROUP)
    index = tl.program_id(0) % in_group
    rows = ((first + index % height) * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    columns = ((index // height) * TILE + tl.arange(0, TILE)).to(tl.int64)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, TERMS):
        terms = start + tl.arange(0, TERMS)
        left = tl.load(a + rows * k + terms[None, :], mask=(rows < m) & (terms[None, :] < k), other=0.0)
        right = tl.load(
            b + terms.to(tl.int64)[:, None] * n + columns, mask=(terms[:, None] < k) & (columns < n), other=0.0
        )
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(out + rows * n + columns, total.to(out.dtype.element_ty), mask=(rows < m) & (columns < n))


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    m, k = a.shape
    n = b.shape[1]
    programs = (triton.cdiv(m, TILE) * triton.cdiv(n, TILE),)
    precision = "tf32" if dtype.matrix_only else "ieee"
    terms = 128 // dtype.itemsize_bytes  # three tiles of 128 bytes a row then fit the smallest shared memory, 99 KiB
    return lambda: _matmul[programs](a, b, out, m, n, k, TILE, terms, GROUP, precision, num_warps=8, num_stages=3)
