"""One implementation on one case, built and ready to run: what the timing loop takes in turns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.backends import load_backend
from gpuexplore.backends.contract import Backend
from gpuexplore.backends.timer import Clock, Run, Timer
from gpuexplore.dtypes import DType, Stored, dtype_named
from gpuexplore.errors import Unsupported
from gpuexplore.model import CacheState, Case, Device
from gpuexplore.operations import load_build
from gpuexplore.operations.contract import Implementation, Operation


@dataclass(frozen=True, slots=True)
class Candidate:
    """A `run` with its output, its timer and its flush; `run` alone is what is timed."""

    case: Case
    backend: Backend
    dtype: DType
    run: Run
    out: Any
    timer: Timer
    flush: Run | None

    def first_call_s(self, clock: Clock) -> float:
        """Return seconds of one call until the device is done."""
        start = clock()
        self.run()
        self.backend.synchronize(self.case.device)
        return (clock() - start) * 1e-9

    def poison(self) -> None:
        """Fill the output with NaN."""
        self.backend.poison(self.out)
        self.backend.synchronize(self.case.device)

    def output(self) -> npt.NDArray[np.float64]:
        """Return the output as float64 on the host."""
        return self.backend.to_host(self.out, self.dtype)


Inputs = tuple[Stored, ...]


def build_candidate(case: Case, operation: Operation, device: Device, *, inputs: Inputs, clock: Clock) -> Candidate:
    """Return `case` built on `device`: inputs there, output allocated, nothing run yet.

    Raises:
        Unsupported: the implementation, its library or the dtype does not exist on this device.
    """
    dtype = dtype_named(case.dtype)
    implementation = operation.implementation_named(case.implementation)
    backend = load_backend(implementation.backend)
    if reason := unsupported(operation, implementation, dtype, device):
        raise Unsupported(reason)
    backend.set_threads(case.options.threads or device.cores or 1)
    build = load_build(operation, implementation)
    out = backend.empty(operation.output(case.shape), dtype, case.device)
    chosen = {"block": case.options.block} if case.options.block else {}
    run = build(tuple(backend.to_device(array, dtype, case.device) for array in inputs), out, dtype, **chosen)
    flush = new_flush(cache_mode(case, device), device, backend)
    return Candidate(case, backend, dtype, run, out, backend.timer(case.device, clock), flush)


def unsupported(operation: Operation, implementation: Implementation, dtype: DType, device: Device) -> str | None:
    """Return why this combination cannot run here, or None when it can; loads nothing heavy."""
    backend = load_backend(implementation.backend)
    if not implementation.runs_on(device):
        return implementation.unsupported(dtype, device)
    if not backend.is_available():
        return f"{implementation.name} is not installed: {backend.INSTALL}"
    return (
        operation.unsupported(dtype) or implementation.unsupported(dtype, device) or backend.unsupported(dtype, device)
    )


def new_flush(cache: CacheState, device: Device, backend: Backend) -> Run | None:
    """Return the flush before each cold call: twice the last-level cache, so that nothing survives.

    Raises:
        Unsupported: the size of the last-level cache is unknown.
    """
    if cache == "warm":
        return None
    if device.cache_bytes is None:
        raise Unsupported(f"cold: the size of the last-level cache of {device.name} is unknown; use --cache warm")
    return backend.flusher(device.id, 2 * device.cache_bytes)


def cache_mode(case: Case, device: Device) -> CacheState:
    """Return the state of the caches a case's own samples are taken in: as asked, else cold on a GPU, warm on a CPU."""
    asked = case.options.cache
    if asked is None or asked == "both":
        return "warm" if device.kind == "cpu" else "cold"
    return asked
