"""Sizes and shapes as a user types them: lists, ranges, exact axes, names of presets."""

import re
from collections.abc import Iterable
from itertools import product, takewhile
from math import prod

from gpuexplore.core import InvalidInput, Shape, read_length, read_whole, require
from gpuexplore.operations.contract import Operation

MOST_SHAPES = 64
MOST_EXACT_SHAPES = 100  # as many as a workload may have layers


def split(text: str) -> tuple[str, ...]:
    """Return the comma-separated words of `text`, each once, in order."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the sizes that a list or a range stands for, ascending, each once.

    Raises:
        InvalidInput: names the part that is no size.
    """
    found: set[int] = set()
    for word in filter(None, re.split(r"[,;\s]+", re.sub(" ?: ?", ":", " ".join(text.strip().strip("[]()").split())))):
        found.update(_range(word) if ":" in word else (_length("size", word),))
        require(len(found) <= MOST_SHAPES, "sizes", text, f"at most {MOST_SHAPES} of them")
    if not found:
        raise InvalidInput("no size: give at least one, like 64,128,256 or 256:8192:x2 or 1k")
    return tuple(sorted(found))


def exact_shapes(text: str, operation: Operation, *, measured: bool = True) -> tuple[Shape, ...]:
    """Return the shapes that a list with ``;`` between them stands for, each once; see `check_limits`.

    Raises:
        InvalidInput: names the part that is no shape of `operation`, or beyond its limits.
    """
    texts = [word for word in text.split(";") if word.strip()]
    if not texts:
        raise InvalidInput(f"no shape of {operation.name}: give at least one: {_accepted_shapes(operation)}")
    require(len(texts) <= MOST_EXACT_SHAPES, "shapes", f"{len(texts)} of them", f"at most {MOST_EXACT_SHAPES}")
    shapes = [shape for each in texts for shape in _shapes(each, operation)]
    require(len(shapes) <= MOST_EXACT_SHAPES, "shapes", f"{len(shapes)} of them", f"at most {MOST_EXACT_SHAPES}")
    for shape in shapes:
        check_limits(shape, operation, measured=measured)
    return tuple(dict.fromkeys(shapes))


def parse_shape(text: str, operation: Operation, *, measured: bool = True) -> Shape:
    """Return the shape that a size, a preset's name or ``m=512,k=64,n=512`` stands for; see `check_limits`.

    Raises:
        InvalidInput: it is none of them, or beyond the operation's limits.
    """
    shape = _shape(text, operation)
    check_limits(shape, operation, measured=measured)
    return shape


def _shape(text: str, operation: Operation) -> Shape:
    if size := read_length(text):
        return operation.shape_of_size(size)
    for preset in operation.presets:
        if text.strip() == preset.name:
            return preset.shape
    wanted = _accepted_shapes(operation)
    given = {}
    for word in split(text):
        axis, equals, length = (part.strip() for part in word.partition("="))
        if not equals or axis not in (*operation.axes, *operation.flags) or axis in given:
            raise InvalidInput.of(f"shape of {operation.name}", text.strip(), wanted)
        if axis in operation.flags and length not in ("0", "1"):
            raise InvalidInput.of(f"{axis} of {operation.name}", length, "0 and 1")
        given[axis] = 0 if length == "0" and axis in operation.flags else _length(f"axis {axis}", length)
    require(set(operation.axes) <= set(given), f"shape of {operation.name}", text.strip(), wanted)
    return Shape(tuple((axis, given[axis]) for axis in (*operation.axes, *operation.flags) if given.get(axis)))


def _shapes(text: str, operation: Operation) -> list[Shape]:
    """Return the shape that a text stands for; where lengths are ranges, ``m=64:512:x2,k=64,n=64:512:x2``, all of them.

    Small ones come first.

    Raises:
        InvalidInput: it is none of the operation, or more than MOST_EXACT_SHAPES.
    """
    if ":" not in text:
        return [_shape(text, operation)]
    words = [[part.strip() for part in word.partition("=")] for word in split(text)]
    lengths = [tuple(map(str, _range(length))) if ":" in length else (length,) for _, _, length in words]
    if prod(map(len, lengths)) > MOST_EXACT_SHAPES:
        raise InvalidInput.of("shapes", f"{prod(map(len, lengths))} of them", f"at most {MOST_EXACT_SHAPES}")
    axes = [axis for axis, _, _ in words]
    found = (zip(axes, each, strict=True) for each in product(*lengths))
    texts = [",".join(f"{axis}={length}" for axis, length in pairs) for pairs in found]
    return sorted((_shape(each, operation) for each in texts), key=prod)


def _accepted_shapes(operation: Operation) -> str:
    flags = (f"with or without {flag}=1" for flag in operation.flags)
    example = f"lengths like {operation.shape_of_size(128)}"
    return ", ".join([example, *flags, "a size", *(preset.name for preset in operation.presets)])


def check_limits(shape: Shape, operation: Operation, *, measured: bool = True) -> None:
    """Accept a shape.

    Args:
        shape: of `operation`.
        operation: what it is a shape of.
        measured: whether it may have to be computed here, within the operation's limits; else it is only predicted.

    Raises:
        InvalidInput: an axis is beyond its limit, or the shape has no meaning.
    """
    for axis, length in shape.axes:
        limit = 1 if axis in operation.flags else operation.limits[axis] if measured else 2**40
        require(length <= limit, f"{axis} of {operation.name}", length, f"1 to {limit}")
    if problem := operation.problem(shape):
        raise InvalidInput(f"shape {shape} of {operation.name}: {problem}")


def _range(word: str) -> Iterable[int]:
    """Return the sizes of ``start:stop:xF`` or ``start:stop:+S``, both ends included."""
    wanted = "start:stop:x2 or start:stop:+256"
    parts = [part.strip() for part in word.split(":")]
    if len(parts) != 3 or parts[2][:1] not in ("x", "+"):
        raise InvalidInput.of("range", word, wanted)
    start, stop, step = (_length("range", part) for part in (*parts[:2], parts[2][1:]))
    if start > stop or (parts[2][0] == "x" and step == 1):
        raise InvalidInput.of("range", word, f"{wanted}, ascending")
    grown = (start * step**i if parts[2][0] == "x" else start + step * i for i in range(MOST_SHAPES + 1))
    return takewhile(lambda size: size <= stop, grown)


def _length(what: str, text: str) -> int:
    number = read_length(text)
    if not number:
        axes = ""
        if "=" in text or re.fullmatch("[0-9]+([x×*][0-9]+)+", text):  # 512x64x512 may be m, n, k or m, k, n
            axes = "; lengths of several axes are a shape (--shape), like m=512,k=64,n=512"
        raise InvalidInput.of(what, text, f"whole numbers from 1 to 2^40, like 4096, 4k or 2^12{axes}")
    return number


def whole_number(what: str, text: str) -> int:
    """Return a whole number from 1.

    Raises:
        InvalidInput: it is none; `what` names it.
    """
    number = read_whole(text)
    if not number:
        raise InvalidInput.of(what, text, "whole numbers from 1")
    return number
