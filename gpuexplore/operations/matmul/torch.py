"""torch.mm: MKL and oneDNN on a CPU, cuBLAS on CUDA; TF32 is allowed for tf32 and for nothing else."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    torch.backends.cuda.matmul.allow_tf32 = dtype.matrix_only
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return lambda: torch.mm(a, b, out=out)
