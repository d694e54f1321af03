"""The update's operations one by one, which torch.compile fuses into one kernel; in the format sums are kept in."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.backends.inductor import compiled
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

Tensor = torch.Tensor


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the update of the rows (arrays, n) by gradients (n) into `out` (arrays, n)."""
    gradients, old = inputs
    kind = getattr(torch, DTYPES[dtype.accumulate].array_name)
    update = (_sgd, _momentum, _adamw)[len(old) - 1]

    def step(gradients: Tensor, old: Tensor, out: Tensor) -> None:
        for target, row in zip(out, update(gradients.to(kind), *old.to(kind)), strict=True):
            target.copy_(row)

    run = compiled(step)
    return lambda: run(gradients, old, out)


def _sgd(gradients: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
    return (weights - RATE * gradients,)


def _momentum(gradients: Tensor, weights: Tensor, momentum: Tensor) -> tuple[Tensor, ...]:
    kept = MOMENTUM * momentum + gradients
    return weights - RATE * kept, kept


def _adamw(gradients: Tensor, weights: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
    first = FIRST * first + (1 - FIRST) * gradients
    second = SECOND * second + (1 - SECOND) * gradients * gradients
    update = STEP_RATE * first / (torch.sqrt(second) * CORRECTION + EPSILON)
    return (1 - RATE * DECAY) * weights - update, first, second
