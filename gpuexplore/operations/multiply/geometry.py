"""The block shapes of the element-wise product and the elements a block computes."""

from math import prod

from gpuexplore.kernels.geometry import Geometry

ONE_EACH = Geometry(
    ((256,), (128,), (512,), (1024,)), tile=lambda block: (block[0],), domain=lambda output: (prod(output),)
)
