"""Ways to move data: between a host and a GPU, and on a machine without a GPU copies within the CPU's memory.

Between a host and a GPU torch moves from pageable and pinned memory, and Numba where it is asked to or implicitly.
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

Floats = npt.NDArray[np.float32]
Move = tuple[str, int, Call, Callable[[], bool]]  # name, copies of the array, the call, and whether it was right


def moves(size_bytes: int, device: Device, clock: Clock) -> Iterator[Way]:
    """Yield every way to move `size_bytes` on this kind of device; of a GPU those whose library is installed."""
    values = np.random.default_rng(0).standard_normal(size_bytes // np.float32().itemsize, np.float32)
    for library, built in MOVES[device.kind].items():
        backend = load_backend(library)
        if device.kind == "cpu":
            backend.set_threads(device.cores or 1)
        elif not backend.is_available():
            continue
        for name, copies, run, is_right in built(values, device.id):
            spoken = library.replace("_", "-")
            reading = TransferReading(f"{spoken} {name}", spoken, size_bytes, copies * size_bytes)
            yield way(reading, run, is_right, device=device, clock=clock)


def _within_numpy(source: Floats, _: str) -> Iterator[Move]:
    out = np.zeros_like(source)
    yield "memory copy", 2, lambda: np.copyto(out, source), lambda: bool(np.array_equal(out, source))


def _within_torch(source: Floats, _: str) -> Iterator[Move]:
    import torch

    given = torch.from_numpy(source)
    target = torch.zeros_like(given)
    yield "memory copy", 2, lambda: target.copy_(given), lambda: bool(torch.equal(target, given))


def _by_torch(values: Floats, device: str) -> Iterator[Move]:
    import torch

    gpu = torch.device("cuda", index_in_this_process(device))
    for memory, pinned in {"pageable": False, "pinned": True}.items():
        host = torch.from_numpy(values.copy())
        host = host.pin_memory() if pinned else host
        there = torch.zeros(host.shape, dtype=host.dtype, device=gpu)
        yield f"host to device, {memory}", 1, *_torch_copy(there, host, gpu)
        back = torch.zeros(host.shape, dtype=host.dtype, pin_memory=pinned)
        yield f"device to host, {memory}", 1, *_torch_copy(back, host.to(gpu), gpu)


def _torch_copy(target: Any, source: Any, gpu: Any) -> tuple[Call, Callable[[], bool]]:
    import torch

    def run() -> None:
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize(gpu)

    return run, lambda: bool(torch.equal(target.cpu(), source.cpu()))


def _by_numba(values: Floats, device: str) -> Iterator[Move]:
    from gpuexplore.features.transfer.measure.numba_copies import copies_by_numba

    return copies_by_numba(values, device)


MOVES: dict[str, dict[str, Callable[[Floats, str], Iterator[Move]]]] = {
    "cpu": {"numpy": _within_numpy, "torch": _within_torch},
    "cuda": {"torch": _by_torch, "numba_cuda": _by_numba},
}
