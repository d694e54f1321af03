"""The update as NumPy calls: one thread, and the arrays pass through memory with each."""

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
    rows, room = np.empty(out.shape, kind), np.empty(len(gradients), kind)
    update = (_sgd, _momentum, _adamw)[len(old) - 1]

    def run() -> None:
        update(gradients.astype(kind, copy=False), old, rows, room)
        out[...] = rows

    def straight() -> None:
        update(gradients, old, out, room)

    return straight if out.dtype == kind else run


def _sgd(gradients: Any, old: Any, new: Any, room: Any) -> None:
    np.multiply(gradients, RATE, out=room)
    np.subtract(old[0], room, out=new[0])


def _momentum(gradients: Any, old: Any, new: Any, room: Any) -> None:
    np.multiply(old[1], MOMENTUM, out=new[1], dtype=new.dtype)
    np.add(new[1], gradients, out=new[1])
    _sgd(new[1], old, new, room)


def _adamw(gradients: Any, old: Any, new: Any, room: Any) -> None:
    np.multiply(old[1], FIRST, out=new[1], dtype=new.dtype)
    np.multiply(gradients, 1 - FIRST, out=room)
    np.add(new[1], room, out=new[1])
    np.multiply(old[2], SECOND, out=new[2], dtype=new.dtype)
    np.multiply(gradients, gradients, out=room)
    np.multiply(room, 1 - SECOND, out=room)
    np.add(new[2], room, out=new[2])
    np.sqrt(new[2], out=room)
    np.multiply(room, CORRECTION, out=room)
    np.add(room, EPSILON, out=room)
    np.divide(new[1], room, out=room)
    np.multiply(room, STEP_RATE, out=room)
    np.multiply(old[0], 1 - RATE * DECAY, out=new[0], dtype=new.dtype)
    np.subtract(new[0], room, out=new[0])
