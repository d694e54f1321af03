"""The ways to read a strided tensor that are timed beside each other, each with what it has to give.

The loop is our own kernel in row order, whose order is known; the copy is torch's, as in `contiguous`, which may go
through the tensor in another order and so hide a part of what the strides cost.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.backends import load_backend
from gpuexplore.backends.timer import Call, Clock
from gpuexplore.dtypes import dtype_named
from gpuexplore.kernels.strided_sum import AXES
from gpuexplore.measure.candidates.candidate import Candidate, cache_mode, new_flush
from gpuexplore.measure.candidates.driver_device import device_for
from gpuexplore.measure.candidates.failure import IncorrectOutput
from gpuexplore.model import Accuracy, Case, Device, Options, Shape

DTYPE = "fp32"  # its bits, as integers
ITEMSIZE_BYTES = 4
LOOPS = {"cpu": "numba_cpu", "cuda": "numba_cuda"}  # by kind of device: the backend, and the module of the kernel
COPY = "torch"
WAYS = ("loop", "copy")
LAYOUTS = ("contiguous", "strided")
BUDGET_S = 0.5
Read = Callable[[], npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape and strides, in elements, of what is read."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def element_count(self) -> int:
        """How many elements are read."""
        return prod(self.shape)

    @property
    def cell_count(self) -> int:
        """Cells of the storage, from the first to the last."""
        return 1 + sum((length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True))

    @property
    def needed_bytes(self) -> int:
        """Bytes of the storage, of the copy, and of what both are checked with."""
        return ITEMSIZE_BYTES * 2 * (max(self.cell_count, self.element_count) + self.element_count)

    @property
    def contiguous(self) -> "Layout":
        """The same shape in row order."""
        steps = [prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        return Layout(self.shape, tuple(steps))

    def of(self, storage: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Return the elements of a storage that it shows, without a copy."""
        strides = [stride * ITEMSIZE_BYTES for stride in self.strides]
        return np.lib.stride_tricks.as_strided(storage, self.shape, strides, writeable=False)


@dataclass(frozen=True, slots=True)
class Reader:
    """A candidate with what its output holds after a call, on the host, and what it should hold."""

    name: str
    candidate: Candidate
    output: Read
    expected: npt.NDArray[Any]

    def check(self) -> None:
        """Compare the output with what it should be: integers, so that they have to be equal.

        Raises:
            IncorrectOutput: they are not.
        """
        if not np.array_equal(self.output(), self.expected):
            raise IncorrectOutput(f"{self.name} read other elements than it should", Accuracy(None, 0.0))


def readers(layout: Layout, device: Device, clock: Clock) -> Iterator[Reader]:
    """Yield each way to read `layout` and the contiguous one on `device`, its output zero so far."""
    cells = max(layout.cell_count, layout.element_count)
    storage = np.random.default_rng(0).integers(1, 2**32, cells, dtype=np.uint32)
    build = {"loop": _loop, "copy": _copy}
    for way in WAYS:
        for name, shown in zip(LAYOUTS, (layout.contiguous, layout), strict=True):
            backend = LOOPS[device.kind] if way == "loop" else COPY
            run, output, expected = build[way](shown, storage, device)
            shape = Shape.of(n=layout.element_count)
            case = Case("strided_read", shape, DTYPE, f"{way} {name}", device.id, Options(threads=1, budget_s=BUDGET_S))
            yield Reader(
                case.implementation, _candidate(case, backend, run, device=device, clock=clock), output, expected
            )


def _candidate(case: Case, library: str, run: Call, *, device: Device, clock: Clock) -> Candidate:
    backend = load_backend(library)
    found = device_for(backend, device)
    flush = new_flush(cache_mode(case, found), found, backend)
    return Candidate(case, found, backend, dtype_named(DTYPE), run, None, backend.timer(device.id, clock), flush)


def _loop(layout: Layout, storage: npt.NDArray[np.uint32], device: Device) -> tuple[Call, Read, npt.NDArray[Any]]:
    """Return a call of the kernel, what it sums to, and what it should sum to."""
    library = LOOPS[device.kind]
    load_backend(library).set_threads(1)
    missing = AXES - len(layout.shape)
    lengths = np.array((*[1] * missing, *layout.shape), np.uint64)
    strides = np.array((*[0] * missing, *layout.strides), np.uint64)
    kernel = import_module(f"gpuexplore.kernels.strided_sum.{library}")
    run, output = kernel.build(storage, lengths, strides, device.id)
    return run, output, layout.of(storage).sum(dtype=np.uint64).reshape(1)


def _copy(layout: Layout, storage: npt.NDArray[np.uint32], device: Device) -> tuple[Call, Read, npt.NDArray[Any]]:
    """Return torch's copy into a contiguous tensor, what it writes, and what it should write."""
    import torch

    backend = load_backend(COPY)
    backend.set_threads(1)
    moved = backend.to_device(storage.view(np.float32), dtype_named(DTYPE), device.id).view(torch.int32)
    source = moved.as_strided(layout.shape, layout.strides)
    out = torch.zeros(layout.shape, dtype=torch.int32, device=moved.device)
    return lambda: out.copy_(source), lambda: out.cpu().numpy().view(np.uint32), layout.of(storage)
