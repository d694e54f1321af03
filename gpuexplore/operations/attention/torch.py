"""torch's scaled_dot_product_attention, which chooses a fused kernel where it has one for the dtype.

It has no variant that writes into a given output: each result is newly allocated.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from gpuexplore.backends.torch import take_over
from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType, *, causal: bool = False) -> Callable[[], object]:
    """Return softmax(q kᵀ / √d) v of three (b, h, s, d) into `out` (b, h, s, d)."""
    q, k, v = inputs
    torch.backends.cuda.matmul.allow_tf32 = dtype.matrix_only
    return lambda: take_over(out, scaled_dot_product_attention(q, k, v, is_causal=causal))
