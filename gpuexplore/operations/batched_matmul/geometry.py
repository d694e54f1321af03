"""The block shapes of the batched kernel: a block computes one tile of one product."""

from math import prod

from gpuexplore.kernels.geometry import Geometry

TILES = Geometry(
    ((16, 16), (32, 32), (8, 8)),
    lambda block: (1, block[1], block[0]),
    domain=lambda output: (prod(output[:-2]), *output[-2:]),
)
