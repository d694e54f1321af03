"""A tensor is sent to CUDA where there is none."""

import torch


def provoke(device: str) -> None:
    """Send a tensor to CUDA."""
    torch.ones(5, 5).to("cuda")
