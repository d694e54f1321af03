"""Where arrays stay that are too large for the host, and the module that works on them there."""

from importlib import import_module
from typing import Any

from gpuexplore.backends import load_backend
from gpuexplore.measure.arrays.large import is_large
from gpuexplore.model import Device, Shape
from gpuexplore.operations.contract import Operation


def place_for(operation: Operation, shape: Shape, device: Device) -> str | None:
    """Return where torch makes and checks a case of this size; None where the host does, or torch finds no GPU."""
    if device.kind != "cuda" or not is_large(operation, shape) or not load_backend("torch").is_available():
        return None
    place: str | None = device_arrays().place_of(device)
    return place


def device_arrays() -> Any:
    """Return the module that works on arrays where they are; it loads torch, which host arrays do without."""
    return import_module("gpuexplore.measure.arrays.device_arrays")
