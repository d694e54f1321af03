"""The layers in torch, conv2d, relu, avg_pool2d and addmm, and autograd's gradients of them."""

from collections.abc import Sequence

import torch
from torch.nn.functional import avg_pool2d, conv2d

from gpuexplore.operations.cnn_step import KERNEL, POOL
from gpuexplore.operations.torch_steps import Layers


def _convolution(images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the mean of each 2 × 2 of max(0, images * filters + bias)."""
    return avg_pool2d(torch.relu(conv2d(images, filters, bias, padding=KERNEL // 2)), POOL)


def _last(maps: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return maps @ weights + bias: the logits."""
    return torch.addmm(bias, maps.flatten(1), weights)


def network(parameters: Sequence[torch.Tensor]) -> Layers:
    """Return the layers, each with the number of its parameters."""
    return [(_convolution, 2), (_last, 2)]
