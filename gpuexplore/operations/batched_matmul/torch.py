"""torch.bmm, or torch.mm where the right-hand matrix is shared and all rows follow one another; TF32 for tf32 only."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return (outer, inner, m, k) @ (k, n) or (outer, inner, k, n) into `out` (outer, inner, m, n)."""
    a, b = inputs
    torch.backends.cuda.matmul.allow_tf32 = dtype.matrix_only
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    if b.ndim == 2 and a.is_contiguous():  # one tall matrix: of rows that lie apart it would be a copy
        tall = a.flatten(0, 2)
        tall_out = out.flatten(0, 2)
        return lambda: torch.mm(tall, b, out=tall_out)
    lefts = a.flatten(0, 1)
    outs = out.flatten(0, 1)
    rights = b.expand(len(lefts), -1, -1) if b.ndim == 2 else b.flatten(0, 1)
    return lambda: torch.bmm(lefts, rights, out=outs)
