"""The kernel of the matrix product with tiles in shared memory: a layer without bias is nothing else."""

from gpuexplore.operations.matmul.numba_cuda_shared import KERNEL

build = KERNEL.build
