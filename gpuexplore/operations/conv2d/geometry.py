"""The block shapes of the direct convolution: threads along a line of all outputs."""

from math import prod

from gpuexplore.kernels.geometry import Geometry

OUTPUT_PER_THREAD = Geometry(
    ((256,), (128,), (64,), (512,), (1024,)),
    tile=lambda block: (block[0],),
    domain=lambda output: (prod(output),),
)
