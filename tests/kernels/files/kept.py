"""The files of others that are kept in this folder; made/README.md says what made them."""

from pathlib import Path

FOLDER = Path(__file__).parent / "made"
SAXPY, TWO, TRITON, NUMBA = (
    FOLDER / name for name in ("nvrtc_saxpy.ptx", "nvrtc_two.ptx", "triton_add_90.ptx", "numba_scale.ptx")
)
SOFTMAX, CUTE, NVCC = (FOLDER / name for name in ("triton_softmax_90.ptx", "cute_add_90.ptx", "nvcc_sum.ptx"))
CUBIN, SAXPY_CUBIN, CUTE_CUBIN = (
    FOLDER / name for name in ("triton_add_80.cubin", "nvrtc_saxpy_90.cubin", "cute_add_90.cubin")
)
FP8_GROUP, PRODUCTS, SPECIALISED = (
    FOLDER / f"{name}.ptx" for name in ("fp8_group_loop", "products_beside_scalars", "warp_specialised")
)
EVERY_PTX = (SAXPY, TWO, TRITON, NUMBA, SOFTMAX, CUTE, NVCC)
SUM_CUDA = FOLDER / "sum.cu"
MATMUL = "_Z6matmulILi16EEvPKfS1_Pfi"
