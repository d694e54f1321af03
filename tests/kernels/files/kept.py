"""The files of others that are kept beside this one; made/README.md says what made them."""

from pathlib import Path

FOLDER = Path(__file__).parent / "made"
SAXPY, TWO, TRITON, NUMBA = (
    FOLDER / name for name in ("nvrtc_saxpy.ptx", "nvrtc_two.ptx", "triton_add_90.ptx", "numba_scale.ptx")
)
CUBIN, SAXPY_CUBIN = FOLDER / "triton_add_80.cubin", FOLDER / "nvrtc_saxpy_90.cubin"
EVERY_PTX = (SAXPY, TWO, TRITON, NUMBA)
MATMUL = "_Z6matmulILi16EEvPKfS1_Pfi"
