"""What a first visit computes, and what is asked for next: workers compile and load it before anybody asks."""

from collections.abc import Iterator
from itertools import product

from gpuexplore.core.model import Device
from gpuexplore.hardware.discovery import USUAL_DTYPES, first_dtypes
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation


def first_kernels(device: Device) -> Iterator[tuple[Operation, Implementation, str]]:
    """Yield operation, implementation and dtype of what the form has chosen on a first visit, for one device.

    Then those of the same operation in the other usual dtypes, whether the device computes in them or not.
    Kernels of other operations are compiled when they are first asked for, which takes seconds each on a new
    installation and is reported as their first call.
    """
    operation = next(iter(OPERATIONS.values()))
    dtypes = dict.fromkeys((*first_dtypes([device]).split(","), *USUAL_DTYPES))
    for dtype, implementation in product(dtypes, operation.usual):
        yield operation, implementation, dtype
