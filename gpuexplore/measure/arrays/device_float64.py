"""Arrays of float64 on a device: what the contracts and the checks compute with NumPy, torch computes there.

A reference is written once, for arrays of NumPy. These replace them: NumPy dispatches each of its functions, and the
table has torch's for it. One that is missing raises, by its name; nothing moves to the host implicitly.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import Tensor, as_tensor, cat, einsum, from_numpy, isfinite, nan_to_num, ones_like, where
from torch.linalg import vector_norm

BY_TORCH: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType(
    {
        np.absolute: torch.absolute,
        np.add: torch.add,
        np.broadcast_to: torch.broadcast_to,
        np.divide: torch.divide,
        np.einsum: einsum,
        np.exp: torch.exp,
        np.less: torch.less,
        np.log: torch.log,
        np.linalg.norm: vector_norm,
        np.matmul: torch.matmul,
        np.maximum: torch.maximum,
        np.minimum: torch.minimum,
        np.moveaxis: torch.moveaxis,
        np.multiply: torch.multiply,
        np.nan_to_num: nan_to_num,
        np.negative: torch.negative,
        np.ones_like: ones_like,
        np.positive: torch.clone,
        np.power: torch.pow,
        np.ravel: torch.ravel,
        np.sqrt: torch.sqrt,
        np.square: torch.square,
        np.subtract: torch.subtract,
        np.tanh: torch.tanh,
        np.where: where,
        np.any: lambda values: (values != 0).any(),
        np.sum: lambda values, axis=None: values.sum(axis),
    }
)


class DeviceFloat64(NDArrayOperatorsMixin):
    """An array of float64 on a device, which NumPy's functions take."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.tensor.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.tensor.numel()

    def __len__(self) -> int:
        """Return the length of its first axis."""
        return len(self.tensor)

    def __getitem__(self, index: Any) -> "DeviceFloat64":
        """Return a part, a copy where the index is a list."""
        axes = index if isinstance(index, tuple) else (index,)
        there = self.tensor.device
        return DeviceFloat64(
            self.tensor[tuple(from_numpy(axis).to(there) if isinstance(axis, np.ndarray) else axis for axis in axes)]
        )

    def __float__(self) -> float:
        """Return the only number."""
        return float(self.tensor)

    def __bool__(self) -> bool:
        """Return whether the only number is not zero."""
        return bool(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refuse: large arrays stay on their device."""
        raise TypeError("arrays on a device are not converted to host arrays implicitly")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any) -> "DeviceFloat64":
        """Compute by torch what `ufunc` is asked for; overwrites `out`."""
        if method == "reduceat" and ufunc is np.add:
            return _sums_of_neighbours(*inputs, **named)
        made = self._by_torch(ufunc, inputs, named)
        if out is not None:
            (overwritten,) = out
            overwritten.tensor.copy_(made)
            return DeviceFloat64(overwritten.tensor)
        return DeviceFloat64(made)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> "DeviceFloat64":
        """Compute by torch what NumPy's `function` is asked for."""
        return DeviceFloat64(self._by_torch(function, given, named))

    def max(self, axis: int, keepdims: bool = False) -> "DeviceFloat64":
        """Return the largest along an axis."""
        return DeviceFloat64(self.tensor.amax(axis, keepdims))

    def mean(self, axis: int, keepdims: bool = False) -> "DeviceFloat64":
        """Return the mean along an axis."""
        return DeviceFloat64(self.tensor.mean(axis, keepdims))

    def sum(self, axis: int, keepdims: bool = False) -> "DeviceFloat64":
        """Return the sum along an axis."""
        return DeviceFloat64(self.tensor.sum(axis, keepdims))

    def argmax(self) -> int:
        """Return the flat index of the largest."""
        return int(self.tensor.argmax())

    def all_finite(self) -> bool:
        """Return whether every number is."""
        return bool(isfinite(self.tensor).all())

    def folded(self, sums: Any) -> tuple["DeviceFloat64", "DeviceFloat64"]:
        """Return its sums of neighbours with their signs, and those of the squares."""
        return sums.of(self), sums.of_squares(self)

    def _by_torch(self, function: Any, given: Any, named: Any) -> Tensor:
        if function not in BY_TORCH:
            raise TypeError(
                f"{function.__name__} of NumPy is not supported on a device: add it to the table of `DeviceFloat64`"
            )
        arguments = [self._operand(each) if isinstance(function, np.ufunc) else _tensor(each) for each in given]
        made: Tensor = BY_TORCH[function](*arguments, **named)
        return made

    def _operand(self, value: Any) -> Tensor:
        """Return an operand of a ufunc as a tensor on the same device."""
        if isinstance(value, DeviceFloat64):
            return value.tensor
        return as_tensor(np.asarray(value, np.float64), device=self.tensor.device)


def _tensor(value: Any) -> Any:
    return value.tensor if isinstance(value, DeviceFloat64) else value


def _sums_of_neighbours(values: DeviceFloat64, starts: Sequence[int], axis: int) -> DeviceFloat64:
    """Return sums along an axis from each of `starts`, which are evenly spaced from 0, to the next one."""
    moved = values.tensor.movedim(axis, -1)
    together = int(starts[1]) if len(starts) > 1 else moved.shape[-1]
    return DeviceFloat64(neighbours(moved, together).movedim(-1, axis))


def neighbours(values: Tensor, together: int) -> Tensor:
    """Return the sums of `together` neighbours along the last axis, the last of them perhaps of fewer."""
    whole = values.shape[-1] // together * together
    sums = values[..., :whole].reshape(*values.shape[:-1], -1, together).sum(-1)
    rest = values[..., whole:].sum(-1, keepdim=True)
    return sums if whole == values.shape[-1] else cat([sums, rest], dim=-1)
