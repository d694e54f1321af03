"""Families of operations, element-wise and row-wise, and what is known of a benchmark of another harness."""

from math import prod
from typing import Any

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Cut, Operation, of_rows, own_size
from gpuexplore.operations.implementation import Implementation


def element_wise(*, operands: int, flops_per_element: int, **own: Any) -> Operation:
    """Return an operation that makes each element of the output of those at its index in the inputs.

    Args:
        operands: how many inputs it has, all of the output's shape.
        flops_per_element: floating-point operations for one element of the output.
        own: the other fields of its contract; the arrays are vectors unless axes are among them.
    """
    usual: dict[str, Any] = {
        "axes": ("n",),
        "limits": {"n": 2**31},
        "default_sizes": (10_000, 100_000, 1_000_000, 4_000_000),
        "shape_of_size": lambda size: Shape.of(n=size),
        "inputs": lambda shape: (tuple(shape),) * operands,
        "output": tuple,
        "flop_count": lambda shape: flops_per_element * prod(shape),
        "reduction_length": lambda _: 1,
        "scale": own_size,
        "cut": lambda shape: Cut((len(tuple(shape)),) * operands),
    }
    return Operation(**usual | own)


def row_wise(*, flops_per_element: int, vectors: int = 0, reduces: bool = False, **own: Any) -> Operation:
    """Return an operation on the rows of a matrix (m, n), each of which a single thread or block can finish.

    Args:
        flops_per_element: floating-point operations for one element of the matrix.
        vectors: how many further inputs (n) every row takes.
        reduces: whether a row becomes one element, (m, n) -> (m), or a row again, (m, n) -> (m, n).
        own: the other fields of its contract.
    """
    usual: dict[str, Any] = {
        "axes": ("m", "n"),
        "limits": {"m": 2**24, "n": 2**24},
        "default_sizes": (128, 512, 1024, 2048) if reduces else (128, 256, 512, 1024),
        "shape_of_size": lambda size: Shape.of(m=size, n=size),
        "inputs": lambda shape: (tuple(shape), *[(shape["n"],)] * vectors),
        "output": lambda shape: tuple(shape)[: 1 if reduces else 2],
        "flop_count": lambda shape: flops_per_element * prod(shape),
        "reduction_length": lambda shape: shape["n"],
        "scale": of_rows,
        "cut": lambda _: Cut((1, *[0] * vectors)),
    }
    return Operation(**usual | own)


def _named(name: str) -> Implementation:
    about = f"{name}, measured by another harness"
    return Implementation(name, "", "numpy", "vector", about, device_kinds=("cpu", "cuda"), optional=True)


# what it computes is unknown, so that it has times but neither work nor a peak
BENCHMARK = Operation(
    name="benchmark",
    title="Benchmark of another harness",
    formula="unknown",
    about="Its file does not state what it computes, so only ratios of its times are known.",
    axes=(),
    limits={},
    default_sizes=(),
    shape_of_size=lambda _: Shape(()),
    inputs=lambda _: (),
    output=lambda _: (),
    flop_count=lambda _: 0,
    reference=lambda *_: np.zeros(()),
    reduction_length=lambda _: 1,
    scale=lambda *_: 0.0,
    implementations=(),
    examples=(),
    nominal_flops=lambda _: True,
    bytes_moved=lambda *_: 0,
    of_name=_named,
)
