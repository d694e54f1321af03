"""Copies within a CPU's memory: what a machine without a GPU can measure instead of transfers."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gpuexplore.backends import load_backend
from gpuexplore.backends.timer import Call, Clock
from gpuexplore.core.model import Device
from gpuexplore.features.transfer.measure.calls import Way, way
from gpuexplore.features.transfer.measure.contract import TransferReading

ITEMSIZE_BYTES = 4
Floats = npt.NDArray[np.float32]


def moves(size_bytes: int, device: Device, clock: Clock) -> Iterator[Way]:
    """Yield a memory copy of `size_bytes` by each library, with as many threads as the CPU has cores."""
    source = np.random.default_rng(0).standard_normal(size_bytes // ITEMSIZE_BYTES, np.float32)
    for library, copy in (("numpy", _numpy_copy), ("torch", _torch_copy)):
        load_backend(library).set_threads(device.cores or 1)
        out = np.zeros_like(source)
        reading = TransferReading(f"{library} memory copy", library, size_bytes, 2 * size_bytes)
        yield way(reading, copy(out, source), _equal_to(out, source), device=device, clock=clock)


def _numpy_copy(out: Floats, source: Floats) -> Call:
    return lambda: np.copyto(out, source)


def _torch_copy(out: Floats, source: Floats) -> Call:
    import torch

    target, given = torch.from_numpy(out), torch.from_numpy(source)
    return lambda: target.copy_(given)


def _equal_to(out: Floats, source: Floats) -> Callable[[], bool]:
    return lambda: bool(np.array_equal(out, source))
