"""Triton: kernels on torch's arrays, timed by events on torch's current stream, which Triton launches on."""

from collections.abc import Mapping
from typing import Any

from gpuexplore.backends import host
from gpuexplore.backends import torch as torch_backend
from gpuexplore.backends.cuda_driver import set_threads  # noqa: F401 part of the contract
from gpuexplore.backends.host import slow_product  # noqa: F401 part of the contract
from gpuexplore.backends.torch import (  # noqa: F401 parts of the contract
    capture,
    driver_facts,
    flusher,
    load,
    poison,
    stored,
    synchronize,
    timer,
    to_device,
)
from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import Device

INSTALL = "pip install triton"
DEVICE_KINDS: tuple[str, ...] = ("cuda",)


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
    if capability and tuple(map(int, capability.split("."))) < (8, 0):
        # https://github.com/triton-lang/triton#compatibility
        return f"Triton needs compute capability 8.0; {device.name} has {capability}"
    return None


def versions() -> Mapping[str, str]:
    """Return the versions of Triton and torch, without loading either."""
    return host.versions_of("triton", "torch")
