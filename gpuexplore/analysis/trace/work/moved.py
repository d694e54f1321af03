"""Bytes that an operation of torch moves at least: each input read once, each output written once.

Only operations whose output has a shape that is known by rule: of others, views among them, it is unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from types import MappingProxyType

from gpuexplore.analysis.trace.events import Argument, Call
from gpuexplore.analysis.trace.work.flops import CONVOLUTIONS, convolved, sensible
from gpuexplore.analysis.trace.work.kinds import (
    ATTENTION_FORWARD,
    BROADCAST,
    BY_ROWS,
    ONLY_MOVES,
    PREFIX,
    REDUCTIONS,
    SAME_AS_INPUT,
)

Dims = tuple[int, ...]
Rule = Callable[[Sequence[Argument]], Dims | None]
ITEMSIZES: Mapping[str, int] = MappingProxyType(  # by torch's name of a type
    {
        "double": 8,
        "float": 4,
        "c10::Half": 2,
        "c10::BFloat16": 2,
        "c10::Float8_e4m3fn": 1,
        "c10::Float8_e5m2": 1,
        "c10::complex<float>": 8,
        "c10::complex<double>": 16,
        "long int": 8,
        "long": 8,
        "int": 4,
        "short": 2,
        "signed char": 1,
        "unsigned char": 1,
        "bool": 1,
    }
)


def byte_count(call: Call) -> int | None:
    """Return the bytes a call moves at least; None where shapes, types or the rule of its output are unknown."""
    rule = OUTPUTS.get(call.name)
    if rule is None or call.arguments is None:
        return None
    tensors = [argument for argument in call.arguments if argument.dims is not None]
    if not tensors or any(argument.kind not in ITEMSIZES for argument in tensors):
        return None
    return sensible(lambda: _moved(tensors, rule(call.arguments or ())))


def _moved(tensors: Sequence[Argument], output: Dims | None) -> int | None:
    if output is None:
        return None
    widest = max(ITEMSIZES[argument.kind] for argument in tensors)  # what types are promoted to
    return sum(map(_size_bytes, tensors)) + prod(output) * widest


def _size_bytes(argument: Argument) -> int:
    """Return the bytes of a tensor; along an axis of stride 0 every element is the same."""
    dims, strides = argument.dims or (), argument.strides
    if strides is None or len(strides) != len(dims):
        return prod(dims) * ITEMSIZES[argument.kind]
    return prod(length for length, stride in zip(dims, strides, strict=True) if stride) * ITEMSIZES[argument.kind]


def _first(arguments: Sequence[Argument]) -> Dims | None:
    return arguments[0].dims


def _nothing(_: Sequence[Argument]) -> Dims | None:
    """Return an output of no bytes: what is written is among the arguments, or small beside them."""
    return (0,)


def _broadcast(arguments: Sequence[Argument]) -> Dims | None:
    shapes = [argument.dims[::-1] for argument in arguments if argument.dims is not None]
    return tuple(max(lengths) for lengths in zip_longest(*shapes, fillvalue=1))


def _product(place: int) -> Rule:
    def rule(arguments: Sequence[Argument]) -> Dims | None:
        left, right = arguments[place].dims, arguments[place + 1].dims
        return None if left is None or right is None else (*left[:-1], right[-1])

    return rule


def _linear(arguments: Sequence[Argument]) -> Dims | None:
    rows, weight = arguments[0].dims, arguments[1].dims
    return None if rows is None or weight is None else (*rows[:-1], weight[0])


def _attention(arguments: Sequence[Argument]) -> Dims | None:
    query, value = arguments[0].dims, arguments[2].dims
    return None if query is None or value is None else (*query[:-1], value[-1])


def _convolution(name: str) -> Rule:
    def rule(arguments: Sequence[Argument]) -> Dims | None:
        image, weight, places = arguments[0].dims, arguments[1].dims, CONVOLUTIONS[name]
        transposed = places.transposed is not None and arguments[places.transposed].value == "True"
        if image is None or weight is None or transposed:
            return None
        return (image[0], weight[0], *convolved(arguments, places))

    return rule


OUTPUTS: Mapping[str, Rule] = MappingProxyType(
    {
        f"{PREFIX}{name}": rule
        for name, rule in {
            **dict.fromkeys(("mm", "bmm"), _product(0)),
            **dict.fromkeys(("addmm", "_addmm_activation", "baddbmm"), _product(1)),
            **dict.fromkeys(("linear", "mkldnn_linear"), _linear),
            **dict.fromkeys(ATTENTION_FORWARD, _attention),
            **{name: _convolution(name) for name in CONVOLUTIONS},
            **dict.fromkeys((*SAME_AS_INPUT, *BY_ROWS, *(f"{name}_" for name in SAME_AS_INPUT)), _first),
            **dict.fromkeys((*BROADCAST, *(f"{name}_" for name in BROADCAST)), _broadcast),
            **dict.fromkeys((*ONLY_MOVES, *REDUCTIONS), _nothing),
        }.items()
    }
)
