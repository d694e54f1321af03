"""The launch of the kernel: a grid that strides through the vector."""

from math import ceil, prod

from gpuexplore.kernels.geometry import Block, Geometry, Lengths

MOST_BLOCKS = 4096  # more than any GPU holds at once, few enough for a thread to take several elements


def _blocks(domain: Lengths, block: Block) -> int:
    return min(MOST_BLOCKS, ceil(prod(domain) / prod(block)))


STRIDES = Geometry(blocks=((256,), (64,), (128,), (512,), (1024,)), tile=lambda _: None, strided_blocks=_blocks)
