"""What a first visit computes: workers compile and load it before anybody asks."""

from collections.abc import Iterator
from itertools import product

from gpuexplore.devices.first_dtypes import first_dtypes
from gpuexplore.model import Device
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Implementation, Operation


def first_kernels(device: Device) -> Iterator[tuple[Operation, Implementation, str]]:
    """Yield operation, implementation and dtype of what the form has chosen on a first visit, for one device.

    Kernels of other operations are compiled when they are first asked for, which takes seconds each on a new
    installation and is reported as their first call.
    """
    operation = next(iter(OPERATIONS.values()))
    for implementation, dtype in product(operation.usual, first_dtypes([device]).split(",")):
        yield operation, implementation, dtype
