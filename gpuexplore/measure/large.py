"""Which cases are too large to make and to check on the host, and stay on their device."""

from importlib import import_module
from math import prod
from typing import Any

from gpuexplore.backends import load_backend
from gpuexplore.model import Device, Shape
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.sampling import CHECK_WHOLE_UP_TO, parts_of_product
from gpuexplore.operations.scales import of_products

LARGE = 2**26  # elements of all arrays: a product of 4730, for which the host needs seconds a set of inputs
MATRIX = 2  # axes
BLOCK_ELEMENTS = 2**24  # that a device draws, compares or multiplies at a time: 128 MiB in float64
BLOCKS_HELD = 6  # as large, at once: places, hashes of them, numbers and what they become


def is_large(operation: Operation, shape: Shape) -> bool:
    """Return whether a case is a product (m, k) @ (k, n) of such a size."""
    if operation.samples is not parts_of_product or operation.scale is not of_products:
        return False
    lengths = (*operation.inputs(shape), operation.output(shape))
    if any(len(array) != MATRIX for array in lengths):
        return False
    return sum(map(prod, lengths)) >= LARGE and prod(lengths[0]) * lengths[1][1] > CHECK_WHOLE_UP_TO


def place_for(operation: Operation, shape: Shape, device: Device) -> str | None:
    """Return where torch makes and checks a case of this size; None where the host does, or torch finds no GPU."""
    if device.kind != "cuda" or not is_large(operation, shape) or not load_backend("torch").is_available():
        return None
    place: str | None = device_arrays().place_of(device)
    return place


def device_arrays() -> Any:
    """Return the module that works on arrays where they are; it loads torch, which host arrays do without."""
    return import_module("gpuexplore.measure.device_arrays")
