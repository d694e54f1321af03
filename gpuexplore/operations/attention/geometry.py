"""The block shapes of the attention kernel: a warp for each row of each head."""

from math import prod

from gpuexplore.kernels.geometry import Geometry

WARP = 32

ROW_PER_WARP = Geometry(
    ((128,), (64,), (256,), (512,)),
    tile=lambda block: (block[0] // WARP,),
    domain=lambda output: (prod(output[:-1]),),
)
