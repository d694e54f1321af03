"""torch's scaled_dot_product_attention, which chooses a fused kernel where it has one for the dtype.

It has no variant that writes into a given output: `out` takes over the memory of each result instead, which
copies nothing; the allocation, from torch's own cache on CUDA, is timed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from gpuexplore.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return softmax(q kᵀ / √d) v of three (b, h, s, d) into `out` (b, h, s, d)."""
    q, k, v = inputs
    torch.backends.cuda.matmul.allow_tf32 = dtype.matrix_only
    return lambda: out.set_(scaled_dot_product_attention(q, k, v))
