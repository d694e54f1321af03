"""How stored elements become the operands of the micro-kernel: as they are, widened, or two bf16 side by side."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from gpuexplore.kernels.cpu.micro_kernel import tile_for
from gpuexplore.kernels.formats.numba_cpu import widen


def terms_of(packed: Any) -> int:
    """Return how many terms an operand of an array whose dtype is `packed` holds."""
    raise NotImplementedError("compiled only")


def lanes_of(packed: Any) -> int:
    """Return how many sums a vector register holds for operands of an array whose dtype is `packed`."""
    raise NotImplementedError("compiled only")


def join(first: Any, second: Any, packed: Any) -> Any:
    """Return the operand that holds `first` and, where it holds two terms, `second`."""
    raise NotImplementedError("compiled only")


@overload(terms_of, strict=False)
def _terms_of(packed: Any) -> Callable[..., Any]:
    count = 2 if packed.dtype == types.uint32 else 1
    return lambda packed: count  # noqa: ARG005 Numba matches names


@overload(lanes_of, strict=False)
def _lanes_of(packed: Any) -> Callable[..., Any]:
    lanes = tile_for(np.dtype(str(packed.dtype))).lanes
    return lambda packed: lanes  # noqa: ARG005 Numba matches names


@overload(join, strict=False)
def _join(first: Any, second: Any, packed: Any) -> Callable[..., Any]:
    if packed.dtype == types.uint32:
        return lambda first, second, packed: np.uint32(first) | (np.uint32(second) << np.uint32(16))  # noqa: ARG005 Numba matches names
    return lambda first, second, packed: widen(first)  # noqa: ARG005 Numba matches names
