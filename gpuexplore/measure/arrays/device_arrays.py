"""Large arrays on a device: made, compared and summed by torch, in blocks, whatever library allocated them.

What is called is bound here when this module is loaded, before any implementation is built: a kernel that replaces one
of torch's functions changes nothing here, and one that replaces a name of this module is detected
(`check/process_snapshot.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import (
    Tensor,
    arange,
    as_tensor,
    cat,
    einsum,
    empty,
    equal,
    from_numpy,
    isfinite,
    isnan,
    matmul,
    nan_to_num,
    ones_like,
    where,
)
from torch.linalg import vector_norm

from gpuexplore.backends import torch as torch_backend
from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import DataMode, Device
from gpuexplore.measure.arrays import large
from gpuexplore.measure.arrays.large import TOGETHER, DrawnInput, Sums, quantile_at, quantiles

Array = np.typing.NDArray[np.float64]
BY_TORCH: Mapping[Callable[..., Any], Callable[..., Any]] = {
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


class DeviceFloat64(NDArrayOperatorsMixin):
    """An array of float64 on a device: what contracts and checks compute with NumPy, torch computes there.

    A reference is written once, for arrays of NumPy. These replace them: NumPy dispatches each of its functions, and
    the table has torch's for it. One that is missing raises, by its name; nothing moves to the host implicitly.
    """

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
        return BY_TORCH[function](*arguments, **named)

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
    return DeviceFloat64(_neighbours(moved, together).movedim(-1, axis))


def _neighbours(values: Tensor, together: int) -> Tensor:
    """Return the sums of `together` neighbours along the last axis, the last of them perhaps of fewer."""
    whole = values.shape[-1] // together * together
    sums = values[..., :whole].reshape(*values.shape[:-1], -1, together).sum(-1)
    rest = values[..., whole:].sum(-1, keepdim=True)
    return sums if whole == values.shape[-1] else cat([sums, rest], dim=-1)


def torch_device_of(device: Device) -> str | None:
    """Return what torch calls `device`; None where it cannot compute there."""
    if device.kind != "cuda" or torch_backend.driver_facts(device.id).problem:
        return None
    return torch_backend.torch_device(device.id)


def _tensor_of(array: Any, dtype: DType) -> Tensor:
    """Return `array` of any library as a tensor of `dtype` over the same memory."""
    kind = getattr(torch, dtype.array_name)
    if isinstance(array, Tensor):
        return array.detach()
    return as_tensor(array.view(f"int{dtype.bits}")).view(kind)


def fill(array: Any, wanted: DrawnInput, by_columns: bool = False) -> None:
    """Make `wanted` in `array`, in memory by rows or by columns."""
    bits = _bits_of(array, wanted.dtype)
    for block in _blocks(wanted.size):
        bits[block] = _drawn_bits(_indices(block, bits.device, wanted, by_columns), wanted)


def holds(array: Any, wanted: DrawnInput, by_columns: bool = False) -> bool:
    """Return whether `array` holds `wanted`, bit by bit, in memory by rows or by columns."""
    bits = _bits_of(array, wanted.dtype)
    return all(
        equal(bits[block], _drawn_bits(_indices(block, bits.device, wanted, by_columns), wanted))
        for block in _blocks(wanted.size)
    )


def is_poisoned(array: Any, dtype: DType) -> bool:
    """Return whether `array` holds nothing but NaN."""
    flat = _tensor_of(array, dtype).reshape(-1)
    return all(bool(isnan(flat[block]).all()) for block in _blocks(flat.numel()))


def poison(array: Any, dtype: DType) -> None:
    """Fill `array` with NaN on its device."""
    if isinstance(array, Tensor):
        torch_backend.poison(array)
    else:
        _tensor_of(array, dtype).fill_(float("nan"))


class DeviceOutput:
    """An output that stays on its device: of a product (m, n) only parts and sums come to the host."""

    def __init__(self, array: Any, dtype: DType) -> None:
        self._rows = _tensor_of(array, dtype)
        self._dtype = dtype
        self.size = self._rows.numel()

    def block(self, positions: slice, lengths: tuple[int, ...]) -> DeviceFloat64:
        """Return its values at `positions` along its leading axes, each of `lengths`, in float64."""
        return DeviceFloat64(self._rows.reshape(-1, *lengths)[positions].double())

    def product(self, position: int, lengths: tuple[int, int]) -> "DeviceOutput":
        """Return one of its products."""
        return DeviceOutput(self._rows.reshape(-1, *lengths)[position], self._dtype)

    def __getitem__(self, index: Any) -> Array:
        """Return a part in float64."""
        rows, columns = index
        return self._rows[from_numpy(rows).to(self._rows.device)][:, columns].double().cpu().numpy()

    def all_finite(self) -> bool:
        """Return whether every element is."""
        flat = self._rows.reshape(-1)
        return all(bool(isfinite(flat[block]).all()) for block in _blocks(self.size))

    def folded(self, sums: Sums) -> tuple[Array, Array]:
        """Return the sums of neighbours in each row, and those of their squares."""
        signs = from_numpy(sums.signs).to(self._rows.device)
        of = []
        of_squares = []
        for block in _blocks(len(self._rows), self._rows.shape[1]):
            wide = self._rows[block].double()
            of.append(_neighbours(wide * signs, TOGETHER).cpu().numpy())
            of_squares.append(_neighbours(wide.square(), TOGETHER).cpu().numpy())
        return np.concatenate(of), np.concatenate(of_squares)


def made(source: DrawnInput, torch_device: str) -> DeviceFloat64:
    """Return `source` in float64 on a device."""
    kind = getattr(torch, source.dtype.array_name)
    numbers = empty(source.size, dtype=torch.float64, device=torch_device)
    for block in _blocks(source.size):
        numbers[block] = _drawn_bits(arange(block.start, block.stop, device=numbers.device), source).view(kind)
    return DeviceFloat64(numbers.reshape(source.shape))


# Products in float64 of two drawn inputs (m, k) @ (k, n), made on a device in blocks of their rows and columns.


def rows_of_product(
    inputs: tuple[DrawnInput, DrawnInput], chosen: np.typing.NDArray[np.int64], torch_device: str
) -> tuple[Array, Array, Array]:
    """Return `chosen` rows of the product, and the norms of the rows and of all columns."""
    left, right = inputs
    rows = _lines(left, from_numpy(chosen).to(torch_device), slice(0, left.shape[1]))
    products = []
    norms = []
    for columns in _columns(right):
        block = _lines(right, arange(right.shape[0], device=torch_device), columns)
        products.append(matmul(rows, block).cpu().numpy())
        norms.append(block.norm(dim=0).cpu().numpy())
    return np.concatenate(products, axis=1), rows.norm(dim=1).cpu().numpy(), np.concatenate(norms)


def sums_of_product(
    inputs: tuple[DrawnInput, DrawnInput], signs: Array, torch_device: str
) -> tuple[Array, Array, Array]:
    """Return the product with the sums of neighbouring columns, and the norms of rows and of these sums."""
    left, right = inputs
    factors = from_numpy(signs).to(torch_device)
    height = arange(right.shape[0], device=torch_device)
    parts = [_neighbours(_lines(right, height, columns) * factors[columns], TOGETHER) for columns in _columns(right)]
    together = cat(parts, dim=1)
    products = []
    norms = []
    for rows in _blocks(*left.shape):
        block = _lines(left, arange(rows.start, rows.stop, device=torch_device), slice(0, left.shape[1]))
        products.append(matmul(block, together).cpu().numpy())
        norms.append(block.norm(dim=1).cpu().numpy())
    return np.concatenate(products), np.concatenate(norms), together.norm(dim=0).cpu().numpy()


def _columns(source: DrawnInput) -> Iterator[slice]:
    """Yield blocks of columns whose lengths are whole sums."""
    length, count = source.shape
    step = max(TOGETHER, large.BLOCK_ELEMENTS // length // TOGETHER * TOGETHER)
    yield from (slice(start, min(start + step, count)) for start in range(0, count, step))


def _lines(source: DrawnInput, rows: Tensor, columns: slice) -> Tensor:
    """Return some rows and columns of an input in float64, where `rows` are."""
    across = arange(columns.start, columns.stop, device=rows.device)
    kind = getattr(torch, source.dtype.array_name)
    wide = empty((len(rows), len(across)), dtype=torch.float64, device=rows.device)
    for block in _blocks(*wide.shape):
        wide[block] = _drawn_bits(rows[block, None] * source.shape[1] + across, source).view(kind)
    return wide


def _blocks(count: int, width: int = 1) -> Iterator[slice]:
    """Yield slices of `count` rows of `width` elements, a block's at a time."""
    step = max(1, large.BLOCK_ELEMENTS // width)
    yield from (slice(start, min(start + step, count)) for start in range(0, count, step))


def _indices(block: slice, torch_device: Any, wanted: DrawnInput, by_columns: bool) -> Tensor:
    """Return the flat indices in `wanted` of the numbers in a block of memory."""
    offsets = arange(block.start, block.stop, device=torch_device)
    if not by_columns:
        return offsets
    rows, columns = wanted.shape[-2:]
    inside = offsets % (rows * columns)
    return offsets - inside + inside % rows * columns + inside // rows


def _bits_of(array: Any, dtype: DType) -> Tensor:
    return _tensor_of(array, dtype).view(getattr(torch, f"int{dtype.bits}")).reshape(-1)


def _drawn_bits(indices: Tensor, source: DrawnInput) -> Tensor:
    return _table(source.dtype, source.data, str(indices.device))[quantile_at(indices, source.first, source.keys)]


@cache
def _table(dtype: DType, data: DataMode, torch_device: str) -> Tensor:
    """Return the quantiles that are drawn from, as bits on a device."""
    return from_numpy(quantiles(dtype, data).view(f"int{dtype.bits}")).to(torch_device)
