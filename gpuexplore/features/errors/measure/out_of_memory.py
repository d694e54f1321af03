"""More memory than any machine has: the allocator refuses at once, and nothing is filled."""

import torch


def provoke(device: str) -> None:
    """Ask for 1 PiB."""
    torch.empty(2**48, dtype=torch.float32, device=device)
