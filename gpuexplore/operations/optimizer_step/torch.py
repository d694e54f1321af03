"""The update as torch calls, a kernel each, each storing what it computed in the dtype; written into the output.

What torch.optim does with `foreach=False`, but for the output: there the weights themselves are overwritten, which
could not be repeated on the same inputs. The bytes are the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.core.dtypes import DType
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
    update = (_sgd, _momentum, _adamw)[len(old) - 1]
    scratch = torch.empty_like(gradients)
    return lambda: update(gradients, old.unbind(), out.unbind(), scratch)


def _sgd(gradients: Any, old: Sequence[Any], new: Sequence[Any], scratch: Any) -> None:
    torch.add(old[0], gradients, alpha=-RATE, out=new[0])


def _momentum(gradients: Any, old: Sequence[Any], new: Sequence[Any], scratch: Any) -> None:
    torch.add(gradients, old[1], alpha=MOMENTUM, out=new[1])
    torch.add(old[0], new[1], alpha=-RATE, out=new[0])


def _adamw(gradients: Any, old: Sequence[Any], new: Sequence[Any], scratch: Any) -> None:
    torch.lerp(old[1], gradients, 1 - FIRST, out=new[1])
    torch.mul(old[2], SECOND, out=new[2])
    new[2].addcmul_(gradients, gradients, value=1 - SECOND)
    torch.sqrt(new[2], out=scratch)
    scratch.mul_(CORRECTION).add_(EPSILON)
    torch.mul(old[0], 1 - RATE * DECAY, out=new[0])
    new[0].addcdiv_(new[1], scratch, value=-STEP_RATE)
