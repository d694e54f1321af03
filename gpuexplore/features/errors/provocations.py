"""The lines that provoke each error that people meet: shown as they are, and run. They need torch."""

import torch


def no_cuda(device: str) -> None:
    """Send a tensor to CUDA."""
    torch.ones(5, 5).to("cuda")


def device_mismatch(device: str) -> None:
    """Call a model with a batch that is elsewhere."""
    # without a GPU, the meta device stands in: its tensors have shapes and no data
    elsewhere = "cuda" if torch.cuda.is_available() else "meta"
    model = torch.nn.Linear(3, 10)
    batch = torch.ones(4, 3, device=elsewhere)
    model(batch)


def out_of_memory(device: str) -> None:
    """Ask for 1 PiB, which is refused at once: nothing is filled."""
    torch.empty(2**48, dtype=torch.float32, device=device)


def unsupported_dtype(device: str) -> None:
    """Add two fp8 tensors."""
    x = torch.ones(2, 2, device=device).to(torch.float8_e4m3fn)
    torch.add(x, x)


def view_of_a_transpose(device: str) -> None:
    """View the transpose of a 2 x 3 tensor as 2 x 3."""
    x = torch.tensor([[1, 2, 3], [4, 5, 6]], device=device)
    x.t().view(2, 3)


def deprecated_amp(device: str) -> None:
    """Make the two parts of the notebook's mixed precision."""
    torch.cuda.amp.GradScaler()
    torch.cuda.amp.autocast()
