"""Triton: kernels on torch's arrays, timed by events on torch's current stream, which Triton launches on."""

from collections.abc import Mapping
from typing import Any

from gpuexplore.backends import host
from gpuexplore.backends import torch as torch_backend
from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import Device

INSTALL = "pip install triton"
DEVICE_KINDS: tuple[str, ...] = ("cuda",)
MIN_COMPUTE_CAPABILITY = (8, 0)  # https://github.com/triton-lang/triton#compatibility

driver_facts = torch_backend.driver_facts
to_device = torch_backend.to_device
poison = torch_backend.poison
load = torch_backend.load
stored = torch_backend.stored
synchronize = torch_backend.synchronize
timer = torch_backend.timer
flusher = torch_backend.flusher
capture = torch_backend.capture
slow_product = host.slow_product


def is_available() -> bool:
    """Return whether Triton and torch, which allocates its arrays, are installed."""
    return host.is_installed("triton", "torch")


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    """Return an uninitialised tensor, and have Triton launch where it is: on torch's current device."""
    import torch

    array = torch_backend.empty(shape, dtype, device)
    torch.cuda.set_device(array.device)
    return array


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why Triton cannot compute on `device`: it is too old."""
    capability = device.compute_capability
    if capability and tuple(map(int, capability.split("."))) < MIN_COMPUTE_CAPABILITY:
        needed = ".".join(map(str, MIN_COMPUTE_CAPABILITY))
        return f"Triton needs compute capability {needed}; {device.name} has {capability}"
    return None


def set_threads(count: int) -> None:
    """Do nothing: a GPU kernel has no CPU threads."""


def versions() -> Mapping[str, str]:
    """Return the versions of Triton and torch, without loading either."""
    found = {name: host.version_of(name) for name in ("triton", "torch")}
    return {name: version for name, version in found.items() if version}
