"""The kernel of the matrix product whose warps have tiles of their own: a layer without bias is nothing else."""

from gpuexplore.operations.matmul.numba_cuda_warptile import KERNEL

build = KERNEL.build
