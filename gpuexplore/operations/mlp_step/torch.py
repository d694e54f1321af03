"""The layers in torch, addmm and relu, and autograd's gradients of them."""

from collections.abc import Sequence

import torch

from gpuexplore.operations.torch_steps import Layers


def _hidden(values: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return max(0, values @ weights + bias)."""
    return torch.relu(torch.addmm(bias, values, weights))


def _last(values: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return values @ weights + bias: the logits."""
    return torch.addmm(bias, values, weights)


def network(parameters: Sequence[torch.Tensor]) -> Layers:
    """Return the layers, each with the number of its parameters."""
    return [*[(_hidden, 2)] * (len(parameters) // 2 - 1), (_last, 2)]
