"""A transpose is viewed in another shape."""

import torch


def provoke(device: str) -> None:
    """View the transpose of a 2 x 3 tensor as 2 x 3."""
    x = torch.tensor([[1, 2, 3], [4, 5, 6]], device=device)
    x.t().view(2, 3)
