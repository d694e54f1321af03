"""Transfers between a host and a GPU: by torch from pageable and pinned memory, and by Numba, asked for or implicit.

Every call ends with a wait for the device and is timed by the host's clock: what the host does is part of a transfer.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.backends import load_backend
from gpuexplore.backends.cuda_driver import index_in_this_process
from gpuexplore.backends.timer import Call, Clock
from gpuexplore.core.model import Device
from gpuexplore.features.transfer.measure.calls import Way, way
from gpuexplore.features.transfer.measure.contract import TransferReading

ITEMSIZE_BYTES = 4
Floats = npt.NDArray[np.float32]
Built = tuple[Call, Callable[[], bool]]


def moves(size_bytes: int, device: Device, clock: Clock) -> Iterator[Way]:
    """Yield every way to move `size_bytes` of which the library is installed."""
    values = np.random.default_rng(0).standard_normal(size_bytes // ITEMSIZE_BYTES, np.float32)
    for library, built in (("torch", _by_torch), ("numba_cuda", _by_numba)):
        if not load_backend(library).is_available():
            continue
        for name, copies, (run, is_right) in built(values, device.id):
            spoken = library.replace("_", "-")
            reading = TransferReading(f"{spoken} {name}", spoken, size_bytes, copies * size_bytes)
            yield way(reading, run, is_right, device=device, clock=clock)


def _by_torch(values: Floats, device: str) -> Iterator[tuple[str, int, Built]]:
    import torch

    gpu = torch.device("cuda", index_in_this_process(device))
    for memory, pinned in {"pageable": False, "pinned": True}.items():
        host = torch.from_numpy(values.copy())
        host = host.pin_memory() if pinned else host
        there = torch.zeros(host.shape, dtype=host.dtype, device=gpu)
        yield f"host to device, {memory}", 1, _torch_copy(there, host, gpu)
        back = torch.zeros(host.shape, dtype=host.dtype, pin_memory=pinned)
        yield f"device to host, {memory}", 1, _torch_copy(back, host.to(gpu), gpu)


def _torch_copy(target: Any, source: Any, gpu: Any) -> Built:
    import torch

    def run() -> None:
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize(gpu)

    return run, lambda: bool(torch.equal(target.cpu(), source.cpu()))


def _by_numba(values: Floats, device: str) -> Iterator[tuple[str, int, Built]]:
    from gpuexplore.features.transfer.measure.numba_copies import copies_by_numba

    return copies_by_numba(values, device)
