"""Batched matrix product: (outer, inner, m, k) @ (k, n) or @ (outer, inner, k, n) -> (outer, inner, m, n).

2·outer·inner·m·n·k FLOPs. On the roofline: the intensity is that of one small product, however many there
are, so batches of small matrices stay memory-bound; one shared right-hand matrix makes them a single tall
product, (outer·inner·m, k) @ (k, n), which is read from memory once.
"""

from math import prod

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.operations.contract import Cut, Example, Operation, Preset, Product, of_products
from gpuexplore.operations.implementation import row
from gpuexplore.operations.matmul import TENSOR_CORES, warp_tile
from gpuexplore.operations.sampling import parts_of_product

TILES = Geometry(  # each of one product
    ((16, 8), (8, 8), (16, 16)),
    tile=lambda block: (1, *warp_tile(block)),
    domain=lambda output: (prod(output[:-2]), *output[-2:]),
)


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


OPERATION = Operation(
    name="batched_matmul",
    title="Batched matrix multiplication",
    formula="(outer, inner, m, k) @ (k, n) or (outer, inner, k, n) → (outer, inner, m, n)",
    about="Many small matmuls: their number fills the device, their size determines how often each number is reused.",
    axes=("outer", "inner", "m", "k", "n", "right"),
    limits={"outer": 2**16, "inner": 2**16, "m": 2**17, "k": 2**17, "n": 2**18, "right": 2**20},
    default_sizes=(16, 32, 64, 128),
    shape_of_size=lambda size: Shape.of(outer=1, inner=16, m=size, k=size, n=size, right=16),
    inputs=_inputs,
    output=lambda shape: (shape["outer"], shape["inner"], shape["m"], shape["n"]),
    flop_count=lambda shape: 2 * _batch(shape) * shape["m"] * shape["k"] * shape["n"],
    reference=np.matmul,
    has_layouts=True,
    reduction_length=lambda shape: shape["k"],
    implementations=(
        row(
            "numpy",
            "numpy.matmul: a BLAS call for each matrix in fp64, fp32 and, widened to fp32, bf16; NumPy's own loop in "
            "fp16",
            unit="matrix",
            one_thread=("fp16",),
            calls="numpy.matmul",
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop over 16 rows of a product at a time, 16-bit formats widened to fp32",
            unit="matrix",
        ),
        row(
            "numba_cuda",
            "numba-cuda-warptile of matmul for each matrix: the grid's third axis counts the matrices",
            geometry=TILES,
            name="numba-cuda-warptile",
            export="WARPTILE",
        ),
        row(
            "numba_cuda",
            "the best step of matmul's CUDA ladder for each matrix: numba-cuda-tensorcore in tf32, bf16 "
            "and fp16, else numba-cuda-warptile",
            geometry=TILES,
            **TENSOR_CORES,
        ),
        row(
            "torch",
            "torch.bmm, one call for all matrices; torch.mm where the right-hand matrix is shared",
            unit="matrix",
            vendor_library=True,
        ),
    ),
    examples=(
        Example(
            Shape.of(outer=2, inner=3, m=5, k=7, n=11, right=1),
            flop_count=6 * 770,
            fp32_bytes=4 * (6 * 35 + 77 + 6 * 55),
            terms=7,
        ),
        Example(
            Shape.of(outer=2, inner=3, m=5, k=7, n=11, right=6),
            flop_count=6 * 770,
            fp32_bytes=4 * 6 * (35 + 77 + 55),
            terms=7,
        ),
    ),
    products=lambda shape: (Product(_batch(shape), shape["m"], shape["n"], shape["k"]),),
    presets=(
        Preset(
            "notebook-batched",
            Shape.of(outer=4, inner=8, m=16, k=32, n=2, right=1),
            "the notebook's (4, 8, 16, 32) @ (32, 2): 32 matrices times one; so small that the time is call overhead",
        ),
    ),
    problem=_problem,
    halved=_halved,
    scale=of_products,
    samples=parts_of_product,
    linear=(-1, -1),
    cut=lambda shape: Cut((2, 0 if shape["right"] == 1 else 2), product=True),
    awkward=(
        (1, 1, 1, 1, 1, 1),
        (1, 1, 1, 257, 255, 1),
        (1, 1, 255, 1, 257, 1),
        (1, 1, 257, 255, 1, 1),
        (1, 1, 255, 257, 33, 1),
        (1, 1, 257, 17, 255, 1),
        (3, 5, 17, 33, 7, 15),
        (2, 3, 33, 17, 65, 1),
        (1, 2, 257, 17, 255, 2),
        (4, 8, 16, 32, 2, 1),
    ),
    simulated=((1, 1, 1, 1, 1, 1), (3, 5, 17, 33, 7, 15), (1, 2, 33, 16, 64, 2), (1, 3, 2, 17, 1, 1)),
)
