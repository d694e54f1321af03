"""The block shapes of each matrix product kernel, the tile a block computes, and what needs tensor cores."""

from gpuexplore.kernels.geometry import Block, Geometry, Lengths

ON_TENSOR_CORES = ("tf32", "bf16", "fp16")  # what `mma.sync` takes, of the dtypes we have
EACH = 8  # rows and columns of sums a thread keeps in registers


def _one_each(block: Block) -> Lengths:
    return block[1], block[0]


def _square_each(block: Block) -> Lengths:
    return EACH * block[1], EACH * block[0]


# x runs along the rows: that is what is slow about it
ROWS_ALONG_X = Geometry(
    ((16, 16), (32, 8), (8, 32), (32, 32), (8, 8)), _one_each, domain=lambda output: (output[1], output[0])
)
ONE_EACH = Geometry(((16, 16), (32, 8), (8, 32), (32, 32), (8, 8)), _one_each)
SQUARE_TILES = Geometry(((16, 16), (32, 32), (8, 8)), _one_each)
REGISTER_TILES = Geometry(((16, 16), (8, 8)), _square_each)
