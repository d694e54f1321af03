"""torch.mv: MKL and oneDNN on a CPU, cuBLAS on CUDA; TF32 is allowed for tf32 and for nothing else."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, n) @ (n) into `out` (m)."""
    a, x = inputs
    torch.backends.cuda.matmul.allow_tf32 = dtype.matrix_only
    return lambda: torch.mv(a, x, out=out)
