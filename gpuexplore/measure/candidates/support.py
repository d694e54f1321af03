"""Which implementation, dtype and device go together, generated from the tables; loads nothing heavy."""

from typing import Any

from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.model import Device
from gpuexplore.operations.contract import Operation


def support_matrix(operation: Operation, device: Device) -> list[dict[str, Any]]:
    """Return a cell for each implementation and dtype: `reason` is None where they run on `device`."""
    return [
        {
            "implementation": implementation.name,
            "dtype": dtype.name,
            "device": device.id,
            "reason": unsupported(operation, implementation, dtype, device),
        }
        for implementation in operation.implementations
        for dtype in DTYPES.values()
    ]
