"""A model is on one device and its batch on another."""

import torch


def provoke(device: str) -> None:
    """Call a model with a batch that is elsewhere."""
    # without a GPU, the meta device stands in: its tensors have shapes and no data
    elsewhere = "cuda" if torch.cuda.is_available() else "meta"
    model = torch.nn.Linear(3, 10)
    batch = torch.ones(4, 3, device=elsewhere)
    model(batch)
