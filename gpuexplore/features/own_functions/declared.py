"""Operations of users: of the arrays of one call, or of axes, as those that are built in."""

from collections.abc import Callable, Iterable, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np

from gpuexplore.core import InvalidInput, Shape, require
from gpuexplore.features.own_functions.sources import OPERATIONS_OF_USERS
from gpuexplore.operations import OPERATIONS, Array, Operation

SIZES = (64, 256, 1024)


def operation_of_arrays(
    name: str,
    arrays: Sequence[Array],
    reference: Callable[..., Any],
    *,
    flop_count: int | None = None,
    byte_count: int | None = None,
) -> Operation:
    """Declare and return the operation that one call on `arrays` is: other inputs hold its numbers in another order.

    Args:
        name: for headings.
        arrays: the inputs, in float64.
        reference: the right answer in float64 from float64 inputs.
        flop_count: of a call; None: unknown, so that no rate of arithmetic is given.
        byte_count: moved at least; None: each input read once, the output written once.

    Raises:
        InvalidInput: the name is taken, the reference fails on the inputs, or there are too many of these.
    """
    if len(arrays) > len(ascii_lowercase) or not any(array.ndim for array in arrays):
        raise InvalidInput.of(
            "inputs", f"{len(arrays)} of them", f"1 to {len(ascii_lowercase)} arrays, one with an axis"
        )
    axes = {
        f"{letter}{i}": length
        for letter, array in zip(ascii_lowercase, arrays, strict=False)
        for i, length in enumerate(array.shape)
    }
    ranks = [array.ndim for array in arrays]
    expected = _expected(name, reference, arrays)

    def inputs(shape: Shape) -> tuple[tuple[int, ...], ...]:
        lengths = iter(tuple(shape))
        return tuple(tuple(next(lengths) for _ in range(rank)) for rank in ranks)

    def reordered(normal: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            array.ravel()[np.argsort(order, axis=None) % array.size].reshape(order.shape)
            for array, order in zip(arrays, normal, strict=True)
        )

    made = _declared(
        name,
        axes=tuple(axes),
        limits=axes,
        awkward=(tuple(axes.values()),),  # the only shape it has
        shape_of_size=lambda size: Shape(tuple((axis, size) for axis in axes)),
        inputs=inputs,
        output=lambda _: expected.shape,
        flop_count=lambda _: flop_count or 0,
        bytes_moved=None if byte_count is None else lambda _, __: byte_count,
        reference=reference,
        prepared=reordered,
        halved=lambda shape: shape,
    )
    OPERATIONS_OF_USERS[made.name] = made
    return made


def shape_of_arrays(operation: Operation, lengths: Sequence[tuple[int, ...]]) -> Shape:
    """Return the shape of `operation` whose inputs have these array shapes.

    Raises:
        InvalidInput: it has none.
    """
    known = sorted({length for array in lengths for length in array})
    for shape in _shapes(operation.axes, known):
        if operation.inputs(shape) == tuple(lengths) and operation.problem(shape) is None:
            return shape
    example = ", ".join(map(str, operation.inputs(operation.shape_of_size(operation.default_sizes[0]))))
    raise InvalidInput.of(f"shapes of the inputs of {operation.name}", ", ".join(map(str, lengths)), f"like {example}")


def operation(
    axes: str,
    inputs: Callable[..., Iterable[Sequence[int]]],
    *,
    output: Callable[..., Sequence[int]] | None = None,
    flops: Callable[..., int] | None = None,
    **about: Any,
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare an operation of one's own; decorates its reference, in float64 on NumPy arrays.

        @gx.operation("m, n", inputs=lambda m, n: [(m, n)], flops=lambda m, n: m * n)
        def relu(x):
            return np.maximum(x, 0)

        gx.run(relu, sizes=[256, 1024], implementations=[my_relu, torch.relu])

    Args:
        axes: names of the axes of a shape.
        inputs: the shapes of the inputs, from the lengths of the axes.
        output: the shape of the output; None: that of the first input.
        flops: floating-point operations of a call, a multiply-add counted as 2; None: unknown, no rate is given.
        **about: `sizes` (a sweep that says something within seconds), `terms` (how many terms an element of the output
            is summed of, from the lengths of the axes; the longest axis where it is left out) and `title`.

    Raises:
        InvalidInput: no operation is declared so; names what is wrong.
    """
    if not isinstance(axes, str) or not callable(inputs):
        raise InvalidInput.of(
            "axes and inputs", axes, "names with commas between them, and a function of their lengths"
        )
    names = tuple(word.strip() for word in axes.split(","))
    if not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
        raise InvalidInput.of("axes", axes, "names with commas between them, each once: m, n")
    if unknown := set(about) - {"sizes", "terms", "title"}:
        raise InvalidInput.of("setting of an operation", sorted(unknown)[0], "sizes, terms, title")
    sizes = about.get("sizes", SIZES)
    terms = about.get("terms")
    if not isinstance(sizes, list | tuple) or not sizes or any(type(size) is not int or size < 1 for size in sizes):
        raise InvalidInput.of("sizes", sizes, "a list of whole numbers from 1")
    sizes = tuple(sizes)

    def declare(reference: Callable[..., Any]) -> Operation:
        require(
            hasattr(reference, "__name__"), "reference", reference, "a named function, whose name the operation gets"
        )

        def output_of(shape: Shape) -> tuple[int, ...]:
            lengths = dict(shape.axes)
            return tuple(output(**lengths) if output else next(iter(inputs(**lengths))))

        made = _declared(
            reference.__name__,
            title=about.get("title", reference.__name__),
            axes=names,
            limits=dict.fromkeys(names, 2**31),
            default_sizes=sizes,
            shape_of_size=lambda size: Shape(tuple((name, size) for name in names)),
            inputs=lambda shape: tuple(tuple(lengths) for lengths in inputs(**dict(shape.axes))),
            output=output_of,
            flop_count=lambda shape: flops(**dict(shape.axes)) if flops else 0,
            reference=reference,
            reduction_length=lambda shape: terms(**dict(shape.axes)) if terms else max(shape),
        )
        _try(made)
        OPERATIONS_OF_USERS[made.name] = made
        return made

    return declare


def _declared(name: str, **own: Any) -> Operation:
    """Return an operation with defaults for what is not declared; declared again it gets another name.

    Raises:
        InvalidInput: one that is built in has this name.
    """
    if name in OPERATIONS or not name.isidentifier():
        raise InvalidInput.of("name of an operation", name, f"a Python identifier other than {', '.join(OPERATIONS)}")
    usual: dict[str, Any] = {
        "title": name,
        "formula": f"{name}: declared by a user",
        "about": "Declared by a user: nothing else is known about it.",
        "default_sizes": SIZES,
        "reduction_length": lambda shape: max(shape, default=1),
        "scale": lambda expected, *_: float(np.abs(expected).max(initial=0.0)),
        "implementations": (),
        "examples": (),
        "nominal_flops": lambda shape: own["flop_count"](shape) == 0,
    }
    reference = own.pop("reference")
    taken = [known for known in OPERATIONS_OF_USERS if known == name or known.rpartition("_")[0] == name]
    name = f"{name}_{len(taken) + 1}" if taken else name
    return Operation(name=name, reference=lambda *arrays: np.asarray(reference(*arrays), np.float64), **usual | own)


def _try(made: Operation) -> None:
    """Compute the reference on a small shape, to see that the declaration is consistent.

    Raises:
        InvalidInput: it does not.
    """
    shape = Shape(tuple((axis, 3 + i) for i, axis in enumerate(made.axes)))
    try:
        arrays = [np.random.default_rng(3).standard_normal(lengths) for lengths in made.inputs(shape)]
        wanted = made.output(shape)
        flops = made.flop_count(shape)
    except Exception as error:
        raise InvalidInput(f"{made.name}: its shapes cannot be computed at {shape}: {error}") from error
    found = _expected(made.name, made.reference, arrays)
    require(
        found.shape == wanted, f"shape of the output of {made.name} at {shape}", wanted, f"{found.shape}: give output="
    )
    check_count(f"FLOPs of {made.name} at {shape}", flops)


def check_count(what: str, count: Any) -> None:
    """Raise InvalidInput where a count of FLOPs or bytes is none."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 10**30:
        raise InvalidInput.of(what, count, "whole numbers from 0 to 1e+30")


def _expected(name: str, reference: Callable[..., Any], arrays: Sequence[Array]) -> Array:
    try:
        found = np.asarray(reference(*(array.copy() for array in arrays)))
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"the reference of {name} fails on float64 arrays of NumPy: {error}") from error
    require(
        found.dtype.kind in "fiub", f"what the reference of {name} returns", found.dtype, "one array of real numbers"
    )
    return found.astype(np.float64)


def _shapes(axes: Sequence[str], known: Sequence[int]) -> Iterable[Shape]:
    """Yield every shape whose axes have lengths of `known`."""
    if not axes:
        yield Shape(())
        return
    for length in known:
        for rest in _shapes(axes[1:], known):
            yield Shape(((axes[0], length), *rest.axes))
