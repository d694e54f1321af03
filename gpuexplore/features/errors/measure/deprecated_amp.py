"""Mixed precision under its old name."""

import torch


def provoke(device: str) -> None:
    """Make the two parts of the notebook's mixed precision."""
    torch.cuda.amp.GradScaler()
    torch.cuda.amp.autocast()
