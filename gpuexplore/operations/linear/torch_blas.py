"""torch.mm, as in the matrix product: a layer without bias is nothing else."""

from gpuexplore.operations.matmul.torch_blas import build

__all__ = ["build"]
