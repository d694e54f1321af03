"""The block shapes of each vector addition kernel and the elements a block computes."""

from math import ceil

from gpuexplore.kernels.geometry import Block, Geometry, Lengths

EACH = 4  # elements a thread has in flight at a time
MOST_BLOCKS = 4096  # a few waves on any GPU: above, threads take further elements

ONE_EACH = Geometry(((256,), (128,), (512,), (1024,)), tile=lambda block: (block[0],))


def _blocks(domain: Lengths, block: Block) -> int:
    return min(MOST_BLOCKS, ceil(domain[0] / (EACH * block[0])))


STRIDED = Geometry(((256,), (128,), (512,), (1024,)), tile=lambda _: None, strided_blocks=_blocks)
