"""The best step of the matrix product's ladder for each dtype: a layer without bias is nothing else."""

from gpuexplore.operations.matmul.numba_cuda_best import KERNEL

build = KERNEL.build
