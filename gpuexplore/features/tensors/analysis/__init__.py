"""Tensors by their shape, strides and offset over a storage: what views, copies and writes do, as torch does it.

Pure arithmetic: neither torch nor NumPy is needed.
"""

from gpuexplore.features.tensors.analysis.chain import Chain, ChainStep
from gpuexplore.features.tensors.analysis.evaluate import StepRefused, evaluate
from gpuexplore.features.tensors.analysis.value import Storage, TensorView

__all__ = ["Chain", "ChainStep", "StepRefused", "Storage", "TensorView", "evaluate"]
