"""The launch geometry of a CUDA kernel: the block shapes it takes, the elements a block writes, the grid that follows.

Below them the launches that kernels of several operations share. Light: the web process computes grids from it
without loading Numba.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod

from gpuexplore.core import InvalidInput, read_whole
from gpuexplore.hardware.capabilities import ComputeCapability

Block = tuple[int, ...]  # threads along x, y, z
Lengths = tuple[int, ...]
AXES = 3


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel.

    Attributes:
        grid: blocks along x, y and z.
        block: threads of a block along x, y and z.
        tile: elements of the domain a block covers along each of its axes; None when blocks stride through it.
        domain: what has to be covered, the axes of the output unless the kernel says otherwise.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    tile: Lengths | None
    domain: Lengths

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return prod(self.grid)

    @property
    def threads_per_block(self) -> int:
        """Threads of one block."""
        return prod(self.block)

    @property
    def uncovered(self) -> int:
        """The number of elements of the domain that no block covers."""
        if self.tile is None:
            return 0 if self.blocks else prod(self.domain)
        along = zip(_by_axis(self.grid, len(self.domain)), self.tile, self.domain, strict=True)
        reached = prod(min(blocks * width, length) for blocks, width, length in along)
        return prod(self.domain) - reached


@dataclass(frozen=True, slots=True)
class Geometry:
    """The rules for a kernel's launch.

    Attributes:
        blocks: block shapes it can be compiled for, the default first.
        tile: elements of the domain one block of that shape covers, along each axis; None: blocks stride.
        domain: from the output's shape to what the grid has to cover; the output itself by default.
        strided_blocks: blocks of a grid that strides, from the domain and the block; used where `tile` gives None.
    """

    blocks: tuple[Block, ...]
    tile: Callable[[Block], Lengths | None]
    domain: Callable[[Lengths], Lengths] = lambda output: output
    strided_blocks: Callable[[Lengths, Block], int] = lambda domain, block: ceil(prod(domain) / prod(block))

    def launch(self, output: Lengths, block: Block | None = None, grid: tuple[int, ...] | None = None) -> Launch:
        """Return the launch that covers `output`, or the one with the `grid` that is given.

        Raises:
            InvalidInput: the kernel cannot be compiled for `block`.
        """
        chosen = self.checked(block)
        domain = self.domain(output)
        tile = self.tile(chosen)
        if tile is None:
            along: tuple[int, ...] = (self.strided_blocks(domain, chosen),)
        else:
            along = _by_axis(tuple(ceil(length / width) for length, width in zip(domain, tile, strict=True)), len(tile))
        return Launch(_three(grid or along), _three(chosen), tile, domain)

    def checked(self, block: Block | None) -> Block:
        """Return `block`, or the default for None.

        Raises:
            InvalidInput: the kernel cannot be compiled for it.
        """
        if block is None:
            return self.blocks[0]
        if block not in self.blocks:
            raise InvalidInput.of("block", _text(block), map(_text, self.blocks))
        return block


def _by_axis(lengths: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return x, y, z as the last, the last but one, ... axis of an array, and the other way round."""
    return lengths[:count][::-1]


def _three(lengths: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*lengths, 1, 1, 1)[:3]
    return x, y, z


def _text(block: Block) -> str:
    return ",".join(map(str, block))


WARP = 32  # threads that run together


def _strided(domain: Lengths, block: Block) -> int:
    """Return blocks of which each thread takes 16 elements, or more: 4096 blocks are a few waves on any GPU."""
    return min(4096, ceil(prod(domain) / (16 * prod(block))))


GRID_STRIDE = Geometry(((256,), (64,), (128,), (512,), (1024,)), tile=lambda _: None, strided_blocks=_strided)
ELEMENT_PER_THREAD = Geometry(
    ((256,), (128,), (512,), (1024,)), tile=lambda block: (block[0],), domain=lambda output: (prod(output),)
)
ROW_PER_BLOCK = Geometry(  # a block of 32 is one warp per row
    ((256,), (32,), (64,), (128,), (512,), (1024,)), tile=lambda _: (1,), domain=lambda output: output[:1]
)


def read_block(text: str, capability: ComputeCapability) -> Block:
    """Return the lengths of `16,16`, where a block of that shape can be launched.

    Raises:
        InvalidInput: it cannot.
    """
    most = capability.max_threads_per_block
    most_along_z = 64  # of every compute capability, and x and y reach the most threads of a block
    words = text.split(",")
    lengths = tuple(length for word in words if (length := read_whole(word.strip())) is not None)
    fits = len(lengths) == len(words) <= AXES and 1 <= prod(lengths) <= most and prod(lengths[2:]) <= most_along_z
    if not fits:
        raise InvalidInput.of("block", text, f"X or X,Y or X,Y,Z of 1 to {most} threads in all, Z up to {most_along_z}")
    return lengths
