"""The block shapes of each matrix-vector kernel and the rows a block computes."""

from gpuexplore.kernels.geometry import Geometry

WARP = 32
ROW_PER_THREAD = Geometry(((128,), (64,), (256,), (512,), (1024,)), tile=lambda block: (block[0],))
ROW_PER_WARP = Geometry(((256,), (128,), (64,), (512,)), tile=lambda block: (block[0] // WARP,))
