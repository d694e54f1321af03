"""The sixth step of the ladder: each warp has a tile of 64 x 64 sums, and each of its threads 16 x 8 of them.

For every 6 vectors that a thread reads from shared memory it does 128 multiply-adds, where 8 x 8 sums take 4 for 64;
what a step costs besides, offsets, barrier and branch, is shared by twice as many. A thread has nearly all the
registers there are, so only two warps share a scheduler: the loads of the next terms have to go out among the
multiply-adds of these, as the compiler orders them. 128 sums in fp64 would take more registers than a thread has: there
a block does the upper half of its tile first, then the lower.
"""

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.register_tiles.steps import matrix_kernel
from gpuexplore.kernels.register_tiles.tiling import Tiling
from gpuexplore.operations.matmul import WARP_THREAD_TILE, WARP_TILES

DEPTH = 8  # terms of a tile


def tiling_of(dtype: DType, block: Block) -> tuple[Tiling, int]:
    """Return how a block divides its tile, and how many such tiles below each other it computes."""
    (rows, columns), passes = WARP_THREAD_TILE, 2 if dtype.name == "fp64" else 1
    return Tiling(
        dtype, block, columns=columns * block[0], depth=DEPTH, thread_rows=rows // passes, thread_columns=columns
    ), passes


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    return matrix_kernel(*tiling_of(dtype, block))


KERNEL = CudaKernel(make, WARP_TILES)
build = KERNEL.build
