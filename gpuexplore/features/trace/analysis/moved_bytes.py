"""Bytes that an operation of torch moves at least: each input read once, each output written once.

Types are promoted as in torch: a number, or a tensor without axes, widens no tensor of its own category; what is
written in place or to `out=` has that tensor's type. Tests compare shapes and types with torch's meta tensors. Only
operations whose output has a shape that is known by rule: of others, views among them, it is unknown.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

from gpuexplore.features.trace.analysis.call_kinds import ATTENTION, ELEMENT_WISE, Attention, of_torch
from gpuexplore.features.trace.analysis.events import Call, CallArgument
from gpuexplore.features.trace.analysis.flops import CONVOLUTIONS, convolved, is_transposed, numbers, sensible

Arguments = Sequence[CallArgument]
Dims = tuple[int, ...]
DEFAULT = "float"  # torch's default type of floating-point numbers
WHOLE = 1
FLOATING = 2
COMPLEX = 3
TYPES: Mapping[str, tuple[int, int]] = {  # torch's name: category, of which bool is 0, and bytes
    "bool": (0, 1),
    **dict.fromkeys(("unsigned char", "signed char"), (WHOLE, 1)),
    **dict.fromkeys(("short", "short int", "short unsigned int"), (WHOLE, 2)),
    **dict.fromkeys(("int", "unsigned int"), (WHOLE, 4)),
    **dict.fromkeys(("long", "long int", "long unsigned int"), (WHOLE, 8)),
    **{f"c10::Float8_{form}": (FLOATING, 1) for form in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")},
    "c10::Float4_e2m1fn_x2": (FLOATING, 1),
    **dict.fromkeys(("c10::BFloat16", "c10::Half"), (FLOATING, 2)),
    "float": (FLOATING, 4),
    "double": (FLOATING, 8),
    "c10::complex<c10::Half>": (COMPLEX, 4),
    "c10::complex<float>": (COMPLEX, 8),
    "c10::complex<double>": (COMPLEX, 16),
}
BY_NUMBER: Mapping[str, str] = {  # c10::ScalarType
    **{"0": "unsigned char", "1": "signed char", "2": "short", "3": "int", "4": "long", "11": "bool"},
    **{"5": "c10::Half", "6": "float", "7": "double", "15": "c10::BFloat16"},
    **{"9": "c10::complex<float>", "10": "c10::complex<double>"},
    **{"23": "c10::Float8_e5m2", "24": "c10::Float8_e4m3fn"},
    **{"25": "c10::Float8_e5m2fnuz", "26": "c10::Float8_e4m3fnuz"},
}


class _Moves(NamedTuple):
    """The memory traffic of an operation.

    Attributes:
        inputs: those of the arguments that are read; a tensor after them is `out`.
        shape: of what is written.
        kind: its type.
    """

    inputs: slice
    shape: Callable[[Arguments], Dims | None]
    kind: Callable[[Arguments], str]


def byte_count(call: Call) -> int | None:
    """Return the bytes a call moves at least; None where shapes, types or the rule of its output are unknown."""
    arguments = call.arguments
    count = OF_SEVERAL.get(call.name)
    moves = MOVES.get(call.name)
    if not arguments or (count is None and moves is None):
        return None
    tensors = [argument for argument in arguments if argument.dims is not None]
    if not tensors or any(argument.kind not in TYPES for argument in tensors):
        return None
    if moves is None:
        return sensible(partial(count, arguments)) if count else None
    return sensible(lambda: _read(arguments[moves.inputs]) + _written(call.name, arguments, moves))


def _read(inputs: Arguments) -> int:
    return sum(_size_bytes(argument) for argument in inputs if argument.dims is not None)


def _size_bytes(argument: CallArgument) -> int:
    """Return the bytes of a tensor; where its strides let elements share an address, that counts once."""
    dims = argument.dims or ()
    strides = argument.strides
    whole = prod(dims)
    if whole and strides is not None and len(strides) == len(dims):
        axes = [(length, stride) for length, stride in zip(dims, strides, strict=True) if stride]
        whole = min(prod(length for length, _ in axes), 1 + sum((length - 1) * stride for length, stride in axes))
    return whole * TYPES[argument.kind][1]


def _written(name: str, arguments: Arguments, moves: _Moves) -> int:
    """Return the bytes of the output.

    Raises:
        ValueError: its shape is unknown.
    """
    if name.endswith("_"):
        return _dense_bytes(arguments[0])
    rest = () if name in ATTENTION else arguments[moves.inputs.stop :]
    out = next((argument for argument in rest if argument.dims is not None), None)
    kind = out.kind if out else moves.kind(arguments)
    shape = out.dims if out and prod(out.dims or ()) else moves.shape(arguments)  # an empty `out` becomes as large
    if shape is None:
        raise ValueError("an output of an unknown shape")
    return prod(shape) * TYPES[kind][1]


def _promoted(inputs: Arguments) -> str:
    """Return the type that `inputs` are computed in: tensors with axes first, then those without, then numbers.

    A number is recorded as a tensor without axes of type double or long.

    Raises:
        ValueError: none of them is a tensor or a number.
    """
    with_axes = without = ""
    for argument in inputs:
        if argument.dims:
            with_axes = _wider(with_axes, argument.kind)
        elif kind := _kind_of_number(argument):
            without = _wider(without, kind)
    if not with_axes or not without:
        found = with_axes or without
        if not found:
            raise ValueError("no tensor and no number")
        return found
    categories = (TYPES[with_axes][0], TYPES[without][0])
    if categories[0] >= categories[1]:
        return with_axes
    return _as_complex(with_axes) if categories == (FLOATING, COMPLEX) else without


def _kind_of_number(argument: CallArgument) -> str:
    if argument.dims is not None:
        return {"double": DEFAULT, "c10::complex<double>": f"c10::complex<{DEFAULT}>"}.get(argument.kind, argument.kind)
    if argument.kind != "Scalar" or not argument.value:
        return ""
    if argument.value in ("True", "False"):
        return "bool"
    if "j" in argument.value:
        return f"c10::complex<{DEFAULT}>"
    return "long int" if argument.value.lstrip("-").isdigit() else DEFAULT


def _as_complex(kind: str) -> str:
    return f"c10::complex<{kind if kind in ('c10::Half', 'double') else 'float'}>"


def _wider(first: str, second: str) -> str:
    """Return the type that two tensors with axes are promoted to."""
    if not first or first == second:
        return second
    narrow, wide = sorted((first, second), key=TYPES.__getitem__)
    if {narrow, wide} == {"unsigned char", "signed char"}:
        return "short int"
    if {narrow, wide} == {"c10::BFloat16", "c10::Half"}:
        return "float"
    if (TYPES[narrow][0], TYPES[wide][0]) == (FLOATING, COMPLEX):
        return max(wide, _as_complex(narrow), key=TYPES.__getitem__)
    return wide


def _floating(inputs: Arguments) -> str:
    kind = _promoted(inputs)
    return kind if TYPES[kind][0] >= FLOATING else DEFAULT


def _as_first(inputs: Arguments) -> str:
    return inputs[0].kind


def _by_dtype(index: int, otherwise: Callable[[Arguments], str], arguments: Arguments) -> str:
    """Return the type that the argument at `index` says, else that of the operation without it."""
    said = arguments[index].value if index < len(arguments) and arguments[index].dims is None else ""
    return BY_NUMBER.get(said) or otherwise(arguments)


def _sum_kind(arguments: Arguments) -> str:
    """Return the type of a sum or a mean: what its argument says, else that of its input, long for whole numbers.

    It stands fourth, after the axes and whether they are kept; second where there are none.
    """
    first = arguments[0].kind
    unsaid = first if TYPES[first][0] >= FLOATING else "long int"
    return _by_dtype(3 if len(arguments) > 3 else 1, lambda _: unsaid, arguments)


def _softmax_kind(index: int, arguments: Arguments) -> str:
    """Return the type of a softmax, that of its input but where the argument at `index` says another."""
    said = arguments[index].value if index < len(arguments) else ""
    return DEFAULT if said == "True" else BY_NUMBER.get(said, arguments[0].kind)


def _first(arguments: Arguments) -> Dims | None:
    return arguments[0].dims


def _broadcast(arguments: Arguments) -> Dims | None:
    pairs = zip_longest(*[argument.dims[::-1] for argument in arguments if argument.dims is not None], fillvalue=1)
    return tuple(0 if 0 in lengths else max(lengths) for lengths in pairs)[::-1]


def _reduced(arguments: Arguments) -> Dims | None:
    """Return what is left of the first argument without the axes of the second; without a list all of them go."""
    dims = arguments[0].dims or ()
    axes = numbers(arguments[1]) if len(arguments) > 1 and arguments[1].value.startswith("[") else ()
    gone = {axis % len(dims) for axis in axes} if dims else set()
    return tuple(length for axis, length in enumerate(dims) if axis not in gone) if gone else ()


def _product(index: int, arguments: Arguments) -> Dims | None:
    left = arguments[index].dims
    right = arguments[index + 1].dims
    return None if left is None or right is None else (*left[:-1], *right[1:][-1:])


def _linear(arguments: Arguments) -> Dims | None:
    rows = arguments[0].dims
    weight = arguments[1].dims
    return None if rows is None or weight is None else (*rows[:-1], weight[0])


def _attention(positions: Attention, arguments: Arguments) -> Dims | None:
    query, _, value = (argument.dims for argument in arguments[positions.query : positions.query + 3])
    is_unknown = any(
        argument.dims is not None for index in positions.unknown for argument in arguments[index : index + 1]
    )
    return None if query is None or value is None or is_unknown else (*query[:-1], value[-1])


def _convolution(name: str, arguments: Arguments) -> Dims | None:
    image = arguments[0].dims
    weight = arguments[1].dims
    positions = CONVOLUTIONS[name]
    if image is None or weight is None:
        return None
    channels = weight[0]
    if is_transposed(arguments, positions) and positions.transposed:
        channels = weight[1] * int(arguments[positions.transposed + 2].value)
    return (image[0], channels, *convolved(arguments, positions))


def _element_wise() -> Iterator[tuple[str, _Moves]]:
    """Yield what the operations by elements move, each also as it is called in place."""
    kinds: Mapping[str, Callable[[Arguments], str]] = {
        "as the first": _as_first,
        "floating": _floating,
        "promoted": _promoted,
        "of the last two": lambda inputs: _promoted(inputs[1:]),
        "bool": lambda _: "bool",
    }
    for (count, result), names in ELEMENT_WISE.items():
        inputs = slice(0, count)
        moves = _Moves(inputs, partial(_of_inputs, _broadcast, inputs), partial(_of_inputs, kinds[result], inputs))
        for name in names:
            yield name, moves
            yield f"{name}_", moves


def _of_inputs(find: Callable[[Arguments], Any], inputs: slice, arguments: Arguments) -> Any:
    return find(arguments[inputs])


def _divided(arguments: Arguments) -> str:
    """Return the type of a quotient; with a rounding mode, which stands third, it is that of the operands."""
    return (_promoted if len(arguments) > 2 and arguments[2].dims is None else _floating)(arguments[:2])


MOVES: Mapping[str, _Moves] = of_torch(
    {
        **dict.fromkeys(
            ("mm", "bmm", "mv"), _Moves(slice(0, 2), partial(_product, 0), partial(_by_dtype, 2, _as_first))
        ),
        "_int_mm": _Moves(slice(0, 2), partial(_product, 0), lambda _: "int"),
        "_scaled_mm": _Moves(
            slice(0, 6), partial(_product, 0), partial(_by_dtype, 6, _as_first)
        ),  # read with scales and a bias
        **dict.fromkeys(
            ("addmm", "_addmm_activation", "addmv", "baddbmm", "addmm_", "addmv_", "baddbmm_"),
            _Moves(slice(0, 3), partial(_product, 1), _promoted),
        ),
        **dict.fromkeys(("linear", "mkldnn_linear"), _Moves(slice(0, 3), _linear, _promoted)),
        **{name: _Moves(slice(0, 4), partial(_convolution, name), _promoted) for name in CONVOLUTIONS},
        **dict(_element_wise()),
        "div": _Moves(slice(0, 2), partial(_of_inputs, _broadcast, slice(0, 2)), _divided),
        **dict.fromkeys(("_softmax", "_log_softmax"), _Moves(slice(0, 3), _first, partial(_softmax_kind, 2))),
        **dict.fromkeys(
            ("_softmax_backward_data", "_log_softmax_backward_data"),
            _Moves(slice(0, 4), _first, partial(_softmax_kind, 3)),
        ),
        "native_layer_norm": _Moves(slice(0, 5), _first, _as_first),
        "clone": _Moves(slice(0, 1), _first, _as_first),
        **dict.fromkeys(("amax", "amin"), _Moves(slice(0, 1), _reduced, _as_first)),
        **dict.fromkeys(("sum", "mean"), _Moves(slice(0, 1), _reduced, _sum_kind)),
        "copy_": _Moves(slice(1, 2), _first, _as_first),
        **dict.fromkeys(("fill_", "zero_"), _Moves(slice(0, 0), _first, _as_first)),
    }
) | {
    name: _Moves(inputs, partial(_attention, positions), partial(_of_inputs, _as_first, inputs))
    for name, positions in ATTENTION.items()
    if not positions.is_backward
    for inputs in (slice(positions.query, positions.query + 3),)
}


def _convolution_backward(arguments: Arguments) -> int | None:
    """Return the bytes of the gradients that a mask asks for: of the image, of the weights, of the bias."""
    gradient, image, weight = arguments[:3]
    mask = [word == "True" for word in re.findall("True|False", arguments[10].value)]
    if len(mask) != 3 or not any(mask):
        return None
    of_image, of_weight, of_bias = mask
    read = [gradient, *([weight] if of_image else []), *([image] if of_weight else [])]
    written = [*([image] if of_image else []), *([weight] if of_weight else [])]
    bias_bytes = numbers(arguments[3])[0] * TYPES[weight.kind][1] if of_bias else 0
    return _read(read) + sum(map(_dense_bytes, written)) + bias_bytes


def _attention_backward(positions: Attention, arguments: Arguments) -> int | None:
    """Return what counts reading query, key, value, the output and its gradient, and writing three gradients."""
    gradient, *inputs = arguments[positions.query - 1 : positions.query + 3]
    is_unknown = any(argument.dims for index in positions.unknown for argument in arguments[index : index + 1])
    if is_unknown or gradient.dims is None or len(inputs) != 3 or any(each.dims is None for each in inputs):
        return None
    return _read((gradient, *inputs)) + sum(map(_dense_bytes, (gradient, *inputs)))  # the output is as its gradient


def _dense_bytes(argument: CallArgument) -> int:
    return prod(argument.dims or ()) * TYPES[argument.kind][1]


OF_SEVERAL: Mapping[str, Callable[[Arguments], int | None]] = (  # outputs
    of_torch({"convolution_backward": _convolution_backward})
    | {name: partial(_attention_backward, positions) for name, positions in ATTENTION.items() if positions.is_backward}
)
