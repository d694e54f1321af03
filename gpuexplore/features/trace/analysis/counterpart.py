"""Operations of ours that compute the same as calls of torch, and how they are measured and predicted here."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import cast

from gpuexplore.analysis.prediction.calls import USUAL_CALLS, Calls
from gpuexplore.core import InvalidInput, Layout, Shape
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.features.trace.analysis.call_kinds import ATTENTION, FUSED_FORWARD, Attention, of_torch
from gpuexplore.features.trace.analysis.events import Call, CallArgument
from gpuexplore.features.trace.analysis.flops import CONVOLUTIONS, causal_of, dims_of, is_transposed, numbers
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import Request, as_command, to_query
from gpuexplore.shapes import check_limits

Arguments = Sequence[CallArgument]
BY_ROWS: Layout = "NN"


Found = tuple[str, dict[str, int], Layout]  # an operation of ours, the lengths of its axes, how its matrices lie
Match = Callable[[Arguments], Found | None]


@dataclass(frozen=True, slots=True)
class Counterpart:
    """One of our operations, with the shape, the dtype and the layout of a call of torch."""

    operation: str
    shape: Shape
    dtype: str
    layout: Layout = BY_ROWS

    @property
    def request(self) -> Request:
        """The request that measures it."""
        return Request(operation=self.operation, shapes=str(self.shape), dtypes=self.dtype, layout=self.layout)

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of a link to the page that measures it."""
        return to_query(self.request)

    @property
    def run_command(self) -> str:
        """The shell command that measures it here."""
        return as_command(self.request)

    def predict_command(self, gpu: str, calls: Calls = USUAL_CALLS) -> str:
        """Return the shell command that predicts it on `gpu`.

        Args:
            calls: how calls follow one another.
        """
        words = ("gpuexplore", "predict", self.operation, "--gpu", gpu, "--shape", str(self.shape), "--dtype")
        return shlex.join((*words, self.dtype, *(("--calls", calls) if calls != USUAL_CALLS else ())))


def counterpart(call: Call, dtype: str | None) -> Counterpart | None:
    """Return what computes the same as a call; None where nothing does, or its shape is beyond our limits.

    Args:
        call: of torch.
        dtype: of its arithmetic, by our name.
    """
    match = MATCHES.get(call.name)
    if match is None or call.arguments is None or dtype not in DTYPES:
        return None
    try:
        found = match(call.arguments)
        if found is None:
            return None
        name, axes, layout = found
        operation = OPERATIONS[name]
        shape = Shape.of(**axes)
        check_limits(shape, operation)
    except (ArithmeticError, IndexError, TypeError, ValueError, InvalidInput):  # other axes, or beyond limits
        return None
    if operation.unsupported(DTYPES[dtype]) or layout not in operation.layouts:
        return None
    return Counterpart(operation.name, shape, dtype, layout)


def _layout(arguments: Arguments, index: int) -> Layout:
    """Return how two matrices lie in memory, N by rows and T by columns; by rows where the trace has no strides."""
    letters = ("T" if _is_by_columns(argument) else "N" for argument in arguments[index : index + 2])
    return cast(Layout, "".join(letters))  # TT is none of ours, which the caller finds


def _is_by_columns(matrix: CallArgument) -> bool:
    strides = matrix.strides or ()
    return len(strides) >= 2 and strides[-1] != 1 and strides[-2] == 1


def _matmul(index: int, arguments: Arguments) -> Found:
    m, k = dims_of(arguments, index)
    _, n = dims_of(arguments, index + 1)
    return ("matmul", {"m": m, "k": k, "n": n}, _layout(arguments, index))


def _matvec(arguments: Arguments) -> Found | None:
    m, n = dims_of(arguments, 0)
    dims_of(arguments, 1)  # a tensor
    return None if _is_by_columns(arguments[0]) else ("matvec", {"m": m, "n": n}, BY_ROWS)


def _addmm(arguments: Arguments) -> Found | None:
    """Return a linear layer; where its matrices do not lie by rows, which ours do, the product that it is."""
    if _layout(arguments, 1) != BY_ROWS:
        return _matmul(1, arguments)
    b, d = dims_of(arguments, 1)
    _, k = dims_of(arguments, 2)
    return ("linear", {"b": b, "d": d, "k": k}, BY_ROWS)


def _linear(arguments: Arguments) -> Found:
    """Return a product with the weights, (out, in) by rows, which are (in, out) by columns."""
    *rows, d = dims_of(arguments, 0)
    return ("matmul", {"m": prod(rows), "k": d, "n": dims_of(arguments, 1)[0]}, "NT")


def _batched(index: int, arguments: Arguments) -> Found:
    batch, m, k = dims_of(arguments, index)
    _, _, n = dims_of(arguments, index + 1)
    limits = OPERATIONS["batched_matmul"].limits
    outer = next((o for o in range(1, limits["outer"] + 1) if batch % o == 0 and batch // o <= limits["inner"]), 0)
    axes = {"outer": outer, "inner": batch // outer if outer else 0, "m": m, "k": k, "n": n, "right": batch}
    return ("batched_matmul", axes, _layout(arguments, index))


def _attention(positions: Attention, arguments: Arguments) -> Found | None:
    query, key, value = (dims_of(arguments, positions.query + offset) for offset in range(3))
    is_masked = positions.mask is not None and any(each.dims for each in arguments[positions.mask : positions.mask + 1])
    causal, _ = causal_of(arguments, positions)
    if is_masked or causal is None or not query == key == value:
        return None
    return ("attention", dict(zip("bhsd", query, strict=True)) | ({"causal": 1} if causal else {}), BY_ROWS)


def _same_shapes(arguments: Arguments) -> tuple[int, ...]:
    """Return the shape of both inputs of an operation that is no broadcast, and scales neither."""
    first = dims_of(arguments, 0)
    if first != dims_of(arguments, 1) or any(argument.value not in ("", "1") for argument in arguments[2:3]):
        raise ValueError("a broadcast, or a factor")
    return first


def _multiply(arguments: Arguments) -> Found:
    *rows, n = _same_shapes(arguments)
    return ("multiply", {"m": prod(rows), "n": n}, BY_ROWS)


def _softmax(arguments: Arguments) -> Found | None:
    *rows, n = dims_of(arguments, 0)
    (axis,) = numbers(arguments[1])
    return ("softmax", {"m": prod(rows), "n": n}, BY_ROWS) if axis in (-1, len(rows)) else None


def _layer_norm(arguments: Arguments) -> Found | None:
    *rows, n = dims_of(arguments, 0)
    has_both = arguments[2].dims == arguments[3].dims == (n,)
    return ("layer_norm", {"m": prod(rows), "n": n}, BY_ROWS) if numbers(arguments[1]) == (n,) and has_both else None


def _copy(arguments: Arguments) -> Found | None:
    same = arguments[0].kind == arguments[1].kind and arguments[0].strides == arguments[1].strides
    return ("copy", {"n": prod(_same_shapes(arguments))}, BY_ROWS) if same else None


def _convolution(name: str, arguments: Arguments) -> Found | None:
    b, c, h, w = dims_of(arguments, 0)
    o, per_group, r, s = dims_of(arguments, 1)
    positions = CONVOLUTIONS[name]
    padding = numbers(arguments[positions.padding])
    stride = numbers(arguments[positions.stride])
    dilation = () if positions.dilation is None else numbers(arguments[positions.dilation])
    transposed = is_transposed(arguments, positions)
    keeps_size = {*stride, *dilation} == {1} and {2 * each + 1 for each in padding} == {r}
    if r != s or c != per_group or transposed or not keeps_size:
        return None
    return ("conv2d", {"b": b, "c": c, "h": h, "w": w, "o": o, "r": r}, BY_ROWS)


MATCHES: Mapping[str, Match] = of_torch(
    {
        "mm": partial(_matmul, 0),
        "mv": _matvec,
        "addmm": _addmm,
        **dict.fromkeys(("linear", "mkldnn_linear"), _linear),
        "bmm": partial(_batched, 0),
        "baddbmm": partial(_batched, 1),
        **dict.fromkeys(
            ("add", "add_"), lambda arguments: ("vector_add", {"n": prod(_same_shapes(arguments))}, BY_ROWS)
        ),
        **dict.fromkeys(("mul", "mul_"), _multiply),
        "_softmax": _softmax,
        "native_layer_norm": _layer_norm,
        "copy_": _copy,
        **{name: partial(_convolution, name) for name in CONVOLUTIONS},
    }
) | {name: partial(_attention, ATTENTION[name]) for name in FUSED_FORWARD}
