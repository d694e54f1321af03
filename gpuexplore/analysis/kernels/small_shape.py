"""A small shape for a kernel: a few blocks, every thread of them at work, so that it can be run step by step."""

from math import prod

from gpuexplore.kernels.geometry import WARP, Block, Geometry, Launch
from gpuexplore.model import Shape
from gpuexplore.operations.contract import Operation

SIZE = WARP  # to begin with
MOST_BLOCKS = 4
LONGEST = 4096


def small_shape(operation: Operation, geometry: Geometry, block: Block | None) -> Shape:
    """Return a shape that at most MOST_BLOCKS blocks cover, with work for each of their threads where that can be."""
    shape = operation.shape_of_size(SIZE)
    while (longest := _longest_that_adds_blocks(operation, geometry, shape, block)) is not None:
        shape = _scaled(shape, longest, 1, 2)
    while not _is_full(operation, geometry.launch(operation.output(shape), block), shape):
        more = [_scaled(shape, axis, 2, 1) for axis, length in shape.axes if length < LONGEST]
        fitting = [larger for larger in more if _helps(operation, geometry, (shape, larger), block)]
        if not fitting:
            break
        shape = fitting[0]
    return shape


def _longest_that_adds_blocks(
    operation: Operation, geometry: Geometry, shape: Shape, block: Block | None
) -> str | None:
    """Return the longest axis whose half has fewer blocks, where there are too many."""
    blocks = geometry.launch(operation.output(shape), block).blocks
    if blocks <= MOST_BLOCKS:
        return None
    halves = {axis: _scaled(shape, axis, 1, 2) for axis, length in shape.axes if length > 1}
    fewer = [axis for axis, half in halves.items() if geometry.launch(operation.output(half), block).blocks < blocks]
    return max(fewer, key=shape.__getitem__, default=None)


def _helps(operation: Operation, geometry: Geometry, both: tuple[Shape, Shape], block: Block | None) -> bool:
    """Return whether a larger shape gives more work to no more blocks than are allowed."""
    now, then = (geometry.launch(operation.output(shape), block) for shape in both)
    if then.blocks > MOST_BLOCKS:
        return False
    return _covered(then) > _covered(now) or (
        _covered(now) == prod(now.tile or now.domain)
        and then.blocks == now.blocks
        and _elements(operation, both[1]) > _elements(operation, both[0])
    )


def _is_full(operation: Operation, launch: Launch, shape: Shape) -> bool:
    """Return whether the first block's part of the output is there, and an element of an array for each thread."""
    full = launch.blocks > 1 if launch.tile is None else _covered(launch) == prod(launch.tile)
    return full and _elements(operation, shape) >= launch.blocks * launch.threads_per_block


def _covered(launch: Launch) -> int:
    """Return how many elements of the domain the first block covers."""
    if launch.tile is None:
        return prod(launch.domain)
    return prod(min(width, length) for width, length in zip(launch.tile, launch.domain, strict=True))


def _elements(operation: Operation, shape: Shape) -> int:
    return max(map(prod, (*operation.inputs(shape), operation.output(shape))))


def _scaled(shape: Shape, axis: str, times: int, over: int) -> Shape:
    axes = tuple((name, length * times // over if name == axis else length) for name, length in shape.axes)
    return Shape(axes)
