"""Batched matrix product: (outer, inner, m, k) @ (k, n) or @ (outer, inner, k, n) -> (outer, inner, m, n).

2·outer·inner·m·n·k FLOPs. On the roofline: the intensity is that of one small product, however many there
are, so batches of small matrices stay memory-bound; one shared right-hand matrix makes them a single tall
product, (outer·inner·m, k) @ (k, n), which is read from memory once.
"""

from collections.abc import Iterable

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.batched_matmul.geometry import TILES
from gpuexplore.operations.contract import WIDENED, Implementation, Operation, Preset, Product
from gpuexplore.operations.sampling import parts_of_product


def _batch(shape: Shape) -> int:
    return shape["outer"] * shape["inner"]


def _inputs(shape: Shape) -> tuple[tuple[int, ...], ...]:
    matrix = (shape["k"], shape["n"])
    stack = (shape["outer"], shape["inner"])
    return (*stack, shape["m"], shape["k"]), matrix if shape["right"] == 1 else (*stack, *matrix)


def _problem(shape: Shape) -> str | None:
    if shape["right"] in (1, _batch(shape)):
        return None
    return f"right is 1 (one matrix for all) or outer × inner = {_batch(shape)} (one each)"


def _halved(shape: Shape) -> Shape:
    """Return the shape with every length halved, the right-hand side still shared or still one each."""
    half = dict(shape.scaled(0.5).axes)
    return Shape.of(**half | {"right": 1 if shape["right"] == 1 else half["outer"] * half["inner"]})


def _implementations() -> Iterable[Implementation]:
    yield Implementation(
        "numpy",
        "numpy_blas",
        "numpy",
        "matrix",
        "numpy.matmul: a BLAS call for each matrix in fp64, fp32 and, widened to fp32, bf16; NumPy's own loop in fp16",
        arithmetic=WIDENED,
    )
    yield Implementation(
        "numba-cpu",
        "numba_cpu_panels",
        "numba_cpu",
        "matrix",
        "a parallel Numba loop over 16 rows of a product at a time, 16-bit formats widened to fp32",
        arithmetic=WIDENED,
    )
    yield Implementation(
        "numba-cuda",
        "numba_cuda_tiles",
        "numba_cuda",
        "vector",
        "a Numba CUDA kernel: tiles in shared memory as in a single product, the grid's third axis counts the matrices",
        arithmetic=WIDENED,
        geometry=TILES,
    )
    yield Implementation(
        "torch",
        "torch_blas",
        "torch",
        "matrix",
        "torch.bmm, one call for all matrices; torch.mm where the right-hand matrix is shared",
    )


OPERATION = Operation(
    name="batched_matmul",
    title="Batched matrix multiplication",
    formula="(outer, inner, m, k) @ (k, n) or (outer, inner, k, n) → (outer, inner, m, n)",
    about="Many small products: their number fills the device, their size decides how often a number is used.",
    axes=("outer", "inner", "m", "k", "n", "right"),
    # a CUDA grid has at most 65535 blocks along z: 255 x 256 matrices fit
    limits={"outer": 255, "inner": 256, "m": 16384, "k": 16384, "n": 16384, "right": 255 * 256},
    default_sizes=(16, 32, 64, 128),
    shape_of_size=lambda size: Shape.of(outer=1, inner=16, m=size, k=size, n=size, right=16),
    inputs=_inputs,
    output=lambda shape: (shape["outer"], shape["inner"], shape["m"], shape["n"]),
    flop_count=lambda shape: 2 * _batch(shape) * shape["m"] * shape["k"] * shape["n"],
    reference=np.matmul,
    reduction_length=lambda shape: shape["k"],
    implementations=tuple(_implementations()),
    products=lambda shape: (Product(_batch(shape), shape["m"], shape["n"], shape["k"]),),
    presets=(
        Preset(
            "notebook-batched",
            Shape.of(outer=4, inner=8, m=16, k=32, n=2, right=1),
            "the notebook's (4, 8, 16, 32) @ (32, 2): 32 matrices against one; so small that the call is what is timed",
        ),
    ),
    problem=_problem,
    halved=_halved,
    samples=parts_of_product,
)
