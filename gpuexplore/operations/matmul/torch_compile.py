"""A product through torch.compile: nothing to fuse, so the library's product behind the guards of a compiled call.

Inductor would compute into memory of its own and copy that to an `out` it is given.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.backends.inductor import compiled
from gpuexplore.backends.torch import take_over
from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    torch.backends.cuda.matmul.allow_tf32 = dtype.matrix_only
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    run = compiled(torch.mm)
    return lambda: take_over(out, run(a, b))
