"""Files of anybody that hold CUDA kernels: PTX, compiled for a GPU first, and cubins, which are machine code."""

from gpuexplore.kernels.files.cubin import Cubin, CubinKernel, read_cubin
from gpuexplore.kernels.files.kernel_file import MOST_BYTES, SUFFIXES, KernelFile, kernel_chosen, read_kernel_file
from gpuexplore.kernels.files.ptx_text import PtxKernel, PtxText, read_ptx

__all__ = [
    "MOST_BYTES",
    "SUFFIXES",
    "Cubin",
    "CubinKernel",
    "KernelFile",
    "PtxKernel",
    "PtxText",
    "kernel_chosen",
    "read_cubin",
    "read_kernel_file",
    "read_ptx",
]
