"""The update as NumPy calls: one thread, and each call passes the arrays through memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.operations.optimizer_step import (
    CORRECTION,
    DECAY,
    EPSILON,
    FIRST,
    MOMENTUM,
    SECOND,
    STEP_RATE,
)
from gpuexplore.operations.training import RATE


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the update of the rows (arrays, n) by gradients (n) into `out` (arrays, n)."""
    gradients, old = inputs
    kind = DTYPES[dtype.accumulate].storage
    rows = np.empty(out.shape, kind)
    scratch = np.empty(len(gradients), kind)
    update = (_sgd, _momentum, _adamw)[len(old) - 1]

    def run() -> None:
        update(gradients.astype(kind, copy=False), old, rows, scratch)
        out[...] = rows

    def straight() -> None:
        update(gradients, old, out, scratch)

    return straight if out.dtype == kind else run


def _sgd(gradients: Any, old: Any, new: Any, scratch: Any) -> None:
    np.multiply(gradients, RATE, out=scratch)
    np.subtract(old[0], scratch, out=new[0])


def _momentum(gradients: Any, old: Any, new: Any, scratch: Any) -> None:
    np.multiply(old[1], MOMENTUM, out=new[1], dtype=new.dtype)
    np.add(new[1], gradients, out=new[1])
    _sgd(new[1], old, new, scratch)


def _adamw(gradients: Any, old: Any, new: Any, scratch: Any) -> None:
    np.multiply(old[1], FIRST, out=new[1], dtype=new.dtype)
    np.multiply(gradients, 1 - FIRST, out=scratch)
    np.add(new[1], scratch, out=new[1])
    np.multiply(old[2], SECOND, out=new[2], dtype=new.dtype)
    np.multiply(gradients, gradients, out=scratch)
    np.multiply(scratch, 1 - SECOND, out=scratch)
    np.add(new[2], scratch, out=new[2])
    np.sqrt(new[2], out=scratch)
    np.multiply(scratch, CORRECTION, out=scratch)
    np.add(scratch, EPSILON, out=scratch)
    np.divide(new[1], scratch, out=scratch)
    np.multiply(scratch, STEP_RATE, out=scratch)
    np.multiply(old[0], 1 - RATE * DECAY, out=new[0], dtype=new.dtype)
    np.subtract(new[0], scratch, out=new[0])
