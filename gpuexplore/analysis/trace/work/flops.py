"""FLOPs of an operation of torch from the shapes of its arguments.

The formulas are those of `torch.utils.flop_counter`, a multiply-add counted as 2:
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/flop_counter.py. Tests compare them with it. A causal mask
halves nothing there, and so nothing here. The backward of a convolution counts its forward once for each gradient.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from gpuexplore.analysis.trace.events import Argument, Call
from gpuexplore.analysis.trace.work.kinds import (
    ATTENTION_BACKWARD,
    ATTENTION_BACKWARD_BY_TOKENS,
    ATTENTION_BY_TOKENS,
    ATTENTION_FORWARD,
    PREFIX,
)

Arguments = Sequence[Argument]
Formula = Callable[[Arguments], int | None]
LARGEST_WORK = 2**62  # FLOPs or bytes of one call


class Places(NamedTuple):
    """Which argument of a convolution is which; None: it has none, which stands for its default."""

    stride: int
    padding: int
    dilation: int | None
    transposed: int | None = None


FORWARD = Places(3, 4, 5)
CONVOLUTIONS: Mapping[str, Places] = MappingProxyType(
    {
        "conv1d": FORWARD,
        "conv2d": FORWARD,
        "conv3d": FORWARD,
        "convolution": FORWARD._replace(transposed=6),
        "_convolution": FORWARD._replace(transposed=6),
        "cudnn_convolution": Places(3, 2, 4),
        "mkldnn_convolution": Places(4, 3, 5),
        "_slow_conv2d_forward": Places(4, 5, None),
    }
)


def flop_count(call: Call) -> int | None:
    """Return the FLOPs of a call by the formula of its operation; None where there is none, or shapes are unknown."""
    formula = FORMULAS.get(call.name)
    if formula is None or call.arguments is None:
        return None
    return sensible(partial(formula, call.arguments))


def sensible(count: Callable[[], int | None]) -> int | None:
    """Return what `count` returns; None where an argument is missing, has other axes, or makes it more than can be."""
    try:
        found = count()
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return None
    return found if found is not None and 0 <= found < LARGEST_WORK else None


def numbers(argument: Argument) -> tuple[int, ...]:
    """Return the whole numbers of a list as torch prints it, `[1, 1]`."""
    return tuple(int(word) for word in re.findall(r"-?\d{1,9}", argument.value))


def _dims(arguments: Arguments, place: int) -> tuple[int, ...]:
    found = arguments[place].dims
    if found is None:
        raise ValueError(f"argument {place} is no tensor")
    return found


def _product(place: int) -> Formula:
    def formula(arguments: Arguments) -> int | None:
        *batch, m, k = _dims(arguments, place)
        *other_batch, other_k, n = _dims(arguments, place + 1)
        return 2 * prod(batch) * m * k * n if (batch, k) == (other_batch, other_k) else None

    return formula


def _linear(arguments: Arguments) -> int | None:
    *rows, d = _dims(arguments, 0)
    k, other_d = _dims(arguments, 1)
    return 2 * prod(rows) * d * k if d == other_d else None


def _attention(*, place: int, products: int, by_tokens: bool) -> Formula:
    """Return the formula of attention whose query is argument `place`: so many products of the scores' size.

    Args:
        place: of the query; key and value follow.
        products: 2 forward; 5 backward, which computes the scores again.
        by_tokens: whether the tokens come before the heads.
    """

    def formula(arguments: Arguments) -> int | None:
        query, key, value = (_dims(arguments, place + offset) for offset in range(3))
        tokens, heads = (1, 2) if by_tokens else (2, 1)
        if not len(query) == len(key) == len(value) == 4 or query[heads] % key[heads] or query[3] != key[3]:
            return None
        pairs = query[0] * query[heads] * query[tokens] * key[tokens]
        by_value = products // 2  # dimensions of query and value may differ
        return 2 * pairs * ((products - by_value) * query[3] + by_value * value[3])

    return formula


def _convolution(places: Places) -> Formula:
    def formula(arguments: Arguments) -> int | None:
        image, weight = _dims(arguments, 0), _dims(arguments, 1)
        if places.transposed is not None and arguments[places.transposed].value == "True":
            return _at_points(image[0], image[2:], weight)
        return _at_points(image[0], convolved(arguments, places), weight)

    return formula


def convolved(arguments: Arguments, places: Places) -> tuple[int, ...]:
    """Return the lengths of a convolution's output along the axes of the image.

    Raises:
        IndexError, ValueError: stride, padding or dilation are not in the trace.
    """
    lengths, filters = _dims(arguments, 0)[2:], _dims(arguments, 1)[2:]
    axes = len(lengths)
    strides, paddings = numbers(arguments[places.stride]), numbers(arguments[places.padding])
    dilations = (1,) if places.dilation is None else numbers(arguments[places.dilation])
    per_axis = (each * axes if len(each) == 1 else each for each in (strides, paddings, dilations))
    found = zip(lengths, filters, *per_axis, strict=True)
    return tuple((n + 2 * pad - far * (r - 1) - 1) // step + 1 for n, r, step, pad, far in found)


def _at_points(batch: int, points: Sequence[int], weight: Sequence[int]) -> int:
    return 2 * batch * prod(points) * prod(weight)


def _convolution_backward(arguments: Arguments) -> int | None:
    gradient, image, weight = (_dims(arguments, place) for place in range(3))
    transposed, mask = arguments[7].value == "True", re.findall("True|False", arguments[10].value)
    if len(mask) != 3:
        return None
    once = _at_points(image[0], (image if transposed else gradient)[2:], weight)
    return once * mask[:2].count("True")  # the bias is not counted


FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        f"{PREFIX}{name}": formula
        for name, formula in {
            **dict.fromkeys(("mm", "bmm", "_scaled_mm"), _product(0)),
            **dict.fromkeys(("addmm", "_addmm_activation", "baddbmm"), _product(1)),
            **dict.fromkeys(("linear", "mkldnn_linear"), _linear),
            **dict.fromkeys(ATTENTION_FORWARD, _attention(place=0, products=2, by_tokens=False)),
            **dict.fromkeys(ATTENTION_BY_TOKENS, _attention(place=0, products=2, by_tokens=True)),
            **dict.fromkeys(ATTENTION_BACKWARD, _attention(place=1, products=5, by_tokens=False)),
            **dict.fromkeys(ATTENTION_BACKWARD_BY_TOKENS, _attention(place=1, products=5, by_tokens=True)),
            **{name: _convolution(places) for name, places in CONVOLUTIONS.items()},
            "convolution_backward": _convolution_backward,
        }.items()
    }
)
