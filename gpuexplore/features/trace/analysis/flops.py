"""FLOPs of an operation of torch from the shapes of its arguments.

The formulas are those of `torch.utils.flop_counter`, a multiply-add counted as 2:
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/flop_counter.py. Tests compare them with it. A complex
multiply-add counts as 8, the four real ones that it is, where torch counts 2, so that the peak of its parts is its
roof; of numbers that are packed two in an element both count. Of attention
only the pairs of a query and a key that its causal flag and its window leave are counted, where torch counts all of
them. The backward of a convolution counts its forward once for each gradient.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from gpuexplore.features.trace.analysis.call_kinds import ATTENTION, Attention, of_torch
from gpuexplore.features.trace.analysis.events import Call, CallArgument
from gpuexplore.operations.attention import attended_pairs

Arguments = Sequence[CallArgument]
Dims = tuple[int, ...]
Formula = Callable[[Arguments], int | None]


class _ConvolutionPositions(NamedTuple):
    """Positions of the arguments of a convolution; None: it has no such argument, and the default applies.

    After the flag that it is transposed stand the padding of the output, and the number of groups.
    """

    stride: int
    padding: int
    dilation: int | None
    transposed: int | None = None


FORWARD = _ConvolutionPositions(3, 4, 5)
CONVOLUTIONS: Mapping[str, _ConvolutionPositions] = {
    "conv1d": FORWARD,
    "conv2d": FORWARD,
    "conv3d": FORWARD,
    "convolution": FORWARD._replace(transposed=6),
    "_convolution": FORWARD._replace(transposed=6),
    "cudnn_convolution": _ConvolutionPositions(3, 2, 4),
    "mkldnn_convolution": _ConvolutionPositions(4, 3, 5),
    "_slow_conv2d_forward": _ConvolutionPositions(4, 5, None),
}


def flop_count(call: Call) -> int | None:
    """Return the FLOPs of a call by the formula of its operation; None where there is none, or shapes are unknown."""
    formula = FORMULAS.get(call.name)
    if formula is None or call.arguments is None:
        return None
    once = sensible(partial(formula, call.arguments))
    real_products = 1  # that one of elements is
    if any(argument.kind.startswith("c10::complex") for argument in call.arguments):
        real_products = 4
    elif any(argument.kind.endswith("_x2") for argument in call.arguments):
        real_products = 2
    return once and once * real_products


def sensible(count: Callable[[], int | None]) -> int | None:
    """Return what `count` returns; None where an argument is missing, has other axes, or makes it more than can be."""
    try:
        found = count()
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return found if found is not None and 0 <= found < 2**62 else None


def numbers(argument: CallArgument) -> tuple[int, ...]:
    """Return the whole numbers of a list as torch prints it, `[1, 1]`."""
    return tuple(int(word) for word in re.findall(r"-?\d{1,9}", argument.value))


def dims_of(arguments: Arguments, index: int) -> tuple[int, ...]:
    """Return the lengths of the axes of the tensor at `index`.

    Raises:
        ValueError: there is no tensor.
    """
    found = arguments[index].dims
    if found is None:
        raise ValueError(f"argument {index} is no tensor")
    return found


def _product(index: int, arguments: Arguments) -> int | None:
    *batch, m, k = dims_of(arguments, index)
    right = dims_of(arguments, index + 1)
    *other_batch, other_k, n = (*right, 1) if len(right) == 1 else right  # a vector is a column
    return 2 * prod(batch) * m * k * n if (batch, k) == (other_batch, other_k) else None


def _linear(arguments: Arguments) -> int | None:
    *rows, d = dims_of(arguments, 0)
    k, other_d = dims_of(arguments, 1)
    return 2 * prod(rows) * d * k if d == other_d else None


def _attention(positions: Attention, arguments: Arguments) -> int | None:
    query, key, value = (dims_of(arguments, positions.query + offset) for offset in range(3))
    sizes = _sequences(arguments, positions, query, key)
    if sizes is None or len(query) != len(key) or query[-1] != key[-1]:
        return None
    if len(query) == 4 and query[1 + positions.by_tokens] % key[1 + positions.by_tokens]:
        return None
    count, queries, keys = sizes
    causal, bottom_right = causal_of(arguments, positions)
    window = _limit(arguments, positions, 0), _limit(arguments, positions, 1)
    pairs = count * attended_pairs(queries, keys, causal=bool(causal), bottom_right=bottom_right, window=window)
    if positions.is_backward:
        return 2 * pairs * (3 * query[-1] + 2 * value[-1])
    return 2 * pairs * (query[-1] + value[-1])


def _sequences(arguments: Arguments, positions: Attention, query: Dims, key: Dims) -> tuple[int, int, int] | None:
    """Return how many products of scores there are, each of how many queries and keys; None where that is unknown.

    Sequences of unlike lengths that follow one another are known where there is but one, or all are of the longest's.
    """
    if any(_has_elements(arguments, index) for index in positions.unknown):
        return None
    if positions.lengths is None or len(query) != 3 or not _has_elements(arguments, positions.lengths[0]):
        tokens = min(len(query) - 3, 1) if positions.by_tokens else len(query) - 2  # of xformers, heads are two axes
        if (
            positions.by_tokens
            and positions.lengths
            and positions.lengths[2] < len(arguments)
            and arguments[positions.lengths[2]].value == str(query[0]) != str(query[tokens])
        ):
            tokens = 0  # which come first of all in Megatron's order
        return prod(query[:-1]) // query[tokens], query[tokens], key[tokens]
    total, heads, _ = query
    total_keys = key[0]
    sequences = dims_of(arguments, positions.lengths[0])[0] - 1
    longest, longest_keys = (int(arguments[positions.lengths[2] + side].value or -1) for side in (0, 1))
    if sequences == 1:
        return heads, total, total_keys
    is_even = (total, total_keys) == (sequences * longest, sequences * longest_keys)
    return (sequences * heads, longest, longest_keys) if is_even else None


def _has_elements(arguments: Arguments, index: int) -> bool:
    return index < len(arguments) and bool(arguments[index].dims) and 0 not in (arguments[index].dims or ())


def causal_of(arguments: Arguments, positions: Attention) -> tuple[bool | None, bool]:
    """Return whether a causal mask was asked for, None where the trace is silent, and whether it ends bottom right."""
    value = arguments[positions.causal].value if positions.causal < len(arguments) else ""
    causal = {"True": True, "False": False, "0": False, "1": True, "2": True}.get(value)  # 0 to 2 are kinds of masks
    return causal, positions.last_rows or value == "2"


def may_be_masked(call: Call) -> bool:
    """Return whether fewer pairs than were counted may have a score: by a flag that is unknown, or by a tensor."""
    positions = ATTENTION.get(call.name)
    if positions is None or call.arguments is None:
        return False
    by_tensor = positions.mask is not None and _has_elements(call.arguments, positions.mask)
    return by_tensor or causal_of(call.arguments, positions)[0] is None


def _limit(arguments: Arguments, positions: Attention, side: int) -> int | None:
    """Return how many keys on one side a query sees; None, which stands as a negative number or not at all, is all."""
    band = [arguments[index].value for index in positions.band if index < len(arguments)]
    seen = next((int(value) for value in band if value.isdigit()), 0)
    if seen and side == 0:
        return seen - 1
    if positions.window is None or positions.window + side >= len(arguments):
        return None
    value = arguments[positions.window + side].value
    return int(value) if value.isdigit() else None


def _convolution(positions: _ConvolutionPositions, arguments: Arguments) -> int | None:
    image = dims_of(arguments, 0)
    weight = dims_of(arguments, 1)
    if is_transposed(arguments, positions):
        return _at_points(image[0], image[2:], weight)
    return _at_points(image[0], convolved(arguments, positions), weight)


def convolved(arguments: Arguments, positions: _ConvolutionPositions) -> tuple[int, ...]:
    """Return the lengths of a convolution's output along the axes of the image; of a transposed one as well.

    Raises:
        IndexError, ValueError: stride, padding or dilation are not in the trace.
    """
    lengths = dims_of(arguments, 0)[2:]
    filters = dims_of(arguments, 1)[2:]
    strides = numbers(arguments[positions.stride])
    paddings = numbers(arguments[positions.padding])
    dilations = (1,) if positions.dilation is None else numbers(arguments[positions.dilation])
    transposed = is_transposed(arguments, positions)
    added = numbers(arguments[positions.transposed + 1]) if transposed and positions.transposed else (0,)
    per_axis = (each * len(lengths) if len(each) == 1 else each for each in (strides, paddings, dilations, added))
    found = zip(lengths, filters, *per_axis, strict=True)
    if transposed:
        return tuple((n - 1) * step - 2 * pad + far * (r - 1) + more + 1 for n, r, step, pad, far, more in found)
    return tuple((n + 2 * pad - far * (r - 1) - 1) // step + 1 for n, r, step, pad, far, _ in found)


def is_transposed(arguments: Arguments, positions: _ConvolutionPositions) -> bool:
    """Return whether a convolution is a transposed one."""
    return positions.transposed is not None and arguments[positions.transposed].value == "True"


def _at_points(batch: int, points: Sequence[int], weight: Sequence[int]) -> int:
    return 2 * batch * prod(points) * prod(weight)


def _convolution_backward(arguments: Arguments) -> int | None:
    gradient, image, weight = (dims_of(arguments, index) for index in range(3))
    mask = re.findall("True|False", arguments[10].value)
    if len(mask) != 3:
        return None
    once = _at_points(image[0], (image if arguments[7].value == "True" else gradient)[2:], weight)
    return once * mask[:2].count("True")  # the bias is not counted


FORMULAS: Mapping[str, Formula] = of_torch(
    {
        **dict.fromkeys(("mm", "bmm", "mv", "_scaled_mm", "_int_mm"), partial(_product, 0)),
        **dict.fromkeys(
            ("addmm", "addmm_", "_addmm_activation", "addmv", "addmv_", "baddbmm", "baddbmm_"), partial(_product, 1)
        ),
        **dict.fromkeys(("linear", "mkldnn_linear"), _linear),
        **{name: partial(_convolution, positions) for name, positions in CONVOLUTIONS.items()},
        "convolution_backward": _convolution_backward,
    }
) | {name: partial(_attention, positions) for name, positions in ATTENTION.items()}
