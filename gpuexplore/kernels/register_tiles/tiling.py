"""Division of a tile of a product among the threads of a block, and where in it the work of each lies."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, inlined, sum_type
from gpuexplore.kernels.intrinsics.vectors import vector_length

WARP_WIDTH = 8  # threads of a warp, over one tile of sums
WARP_HEIGHT = 4
PADDING = 4  # elements, so that those of a row of A, a column of its tile, fall into different banks


@dataclass(frozen=True, slots=True)
class LoadShare:
    """How the threads of a block load the lines of a tile: rows of A, or terms of B.

    Attributes:
        vector: elements that a load brings.
        line_threads: threads along a line.
        sweep: lines that all threads load at once.
        count: loads of each thread.
    """

    vector: int
    line_threads: int
    sweep: int
    count: int

    @property
    def elements(self) -> int:
        """What a thread loads of a tile."""
        return self.vector * self.count


@dataclass(frozen=True)
class Tiling:
    """How a block divides a tile of a product.

    Attributes:
        dtype: of the matrices.
        block: threads along x and y.
        columns: of the tile.
        depth: terms that are in shared memory at a time.
        thread_rows: rows of sums of each thread.
        thread_columns: columns of sums of each thread.
    """

    dtype: DType
    block: Block
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    @cached_property
    def kind(self) -> Any:
        """The NumPy type of the sums, and of the elements in shared memory."""
        return sum_type(self.dtype)

    @cached_property
    def storage(self) -> Any:
        """The NumPy type of the elements in device memory."""
        return self.dtype.storage.type

    @cached_property
    def threads(self) -> int:
        """Threads of the block."""
        return prod(self.block)

    @cached_property
    def rows(self) -> int:
        """Rows of the tile."""
        return self.threads * self.thread_rows * self.thread_columns // self.columns

    @cached_property
    def shared_vector(self) -> int:
        """Elements that a load from shared memory brings."""
        return vector_length(self.kind)

    @cached_property
    def warps_across(self) -> int:
        """Warps side by side."""
        return self.columns // (self.thread_columns * WARP_WIDTH)

    @cached_property
    def padded(self) -> int:
        """Elements from one term of A's tile to the next."""
        return self.rows + PADDING

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Elements of one tile of A and of B in shared memory."""
        return self.depth * self.padded, self.depth * self.columns

    @cached_property
    def share_a(self) -> LoadShare:
        """How A's tile is loaded."""
        return self._share(self.rows, self.depth)

    @cached_property
    def share_b(self) -> LoadShare:
        """How B's tile is loaded."""
        return self._share(self.depth, self.columns)

    def _share(self, lines: int, length: int) -> LoadShare:
        vector = min(vector_length(self.storage), lines * length // self.threads)
        line_threads = length // vector
        sweep = self.threads // line_threads
        return LoadShare(vector, line_threads, sweep, lines // sweep)


def sum_coordinates(tiling: Tiling) -> Any:
    """Return a device function that gives the row and the column of a thread's first sum."""
    warps_across = tiling.warps_across
    thread_rows = tiling.thread_rows
    thread_columns = tiling.thread_columns
    shared_vector = tiling.shared_vector

    @inlined
    def coordinates(thread):
        warp = thread // WARP
        lane = thread % WARP
        row = warp // warps_across * WARP_HEIGHT * thread_rows + lane // WARP_WIDTH * shared_vector
        return row, warp % warps_across * WARP_WIDTH * thread_columns + lane % WARP_WIDTH * shared_vector

    return coordinates


def load_coordinates(tiling: Tiling) -> Any:
    """Return a device function that gives what a thread loads first: row and term of A, term and column of B."""
    a_across = tiling.share_a.line_threads
    a_vector = tiling.share_a.vector
    b_across = tiling.share_b.line_threads
    b_vector = tiling.share_b.vector

    @inlined
    def coordinates(thread):
        return thread // a_across, thread % a_across * a_vector, thread // b_across, thread % b_across * b_vector

    return coordinates
