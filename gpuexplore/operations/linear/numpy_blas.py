"""numpy.matmul, as in the matrix product: a layer without bias is nothing else."""

from gpuexplore.operations.matmul.numpy_blas import build

__all__ = ["build"]
