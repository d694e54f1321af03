"""A dtype that can be stored and not computed with."""

import torch


def provoke(device: str) -> None:
    """Add two fp8 tensors."""
    x = torch.ones(2, 2, device=device).to(torch.float8_e4m3fn)
    torch.add(x, x)
