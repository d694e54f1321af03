"""The launch of the kernel: a block a row."""

from gpuexplore.kernels.geometry import Geometry

ROW_PER_BLOCK = Geometry(  # a block of 32 is one warp a row
    blocks=((256,), (32,), (64,), (128,), (512,), (1024,)), tile=lambda _: (1,), domain=lambda output: output[:1]
)
