"""The libraries that can be measured, a file each: `Backend` says what each offers, `tests/backends` tests all of them.

A backend is a module of this package that satisfies `Backend`. It imports its library inside its functions, so that
the web process can ask a backend for facts without loading torch or numba.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from gpuexplore.backends.timer import Call, Clock, Timer
from gpuexplore.core import Device, Environment, InvalidInput
from gpuexplore.core.dtypes import DType, Stored

BACKENDS = ("numpy", "numpy_returned", "numba_cpu", "numba_cuda", "torch", "torch_compile", "triton", "cupy")


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """Facts about a device from CUDA through one library; unknown is None.

    Attributes:
        uuid: of the GPU this library computes on, without the prefix of NVML's: libraries may number GPUs otherwise.
        cache_bytes: its L2 cache.
        problem: why the library finds no GPU at all.
    """

    uuid: str | None = None
    cache_bytes: int | None = None
    problem: str | None = None


class Backend(Protocol):
    """A library that allocates arrays on a device and runs on them."""

    INSTALL: str
    DEVICE_KINDS: tuple[str, ...]

    def is_available(self) -> bool:
        """Return whether the library is installed; imports nothing heavy."""
        ...

    def unsupported(self, dtype: DType, device: Device) -> str | None:
        """Return why this library cannot compute in `dtype` on `device`, or None when it can."""
        ...

    def driver_facts(self, device: str) -> DriverFacts:
        """Return what CUDA says of `device` to this library; nothing for a CPU, and a problem where it finds no GPU."""
        ...

    def to_device(self, values: Stored, dtype: DType, device: str) -> Any:
        """Return a contiguous copy on `device` of `values`, which are in the storage of `dtype`."""
        ...

    def load(self, array: Any, values: Stored) -> None:
        """Overwrite `array`, which `to_device` made, with `values` of the same shape and storage."""
        ...

    def stored(self, array: Any, dtype: DType) -> Stored:
        """Return the bits of `array` in host memory, after the work on it is done; perhaps a view of it."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Any:
        """Return an uninitialised array of `shape` for outputs."""
        ...

    def poison(self, array: Any) -> None:
        """Fill `array` with NaN, so that an element that is never written shows."""
        ...

    def synchronize(self, device: str) -> None:
        """Wait until all work on `device` is done."""
        ...

    def timer(self, device: str, clock: Clock) -> Timer:
        """Return the timer for the stream this library uses on `device`."""
        ...

    def flusher(self, device: str, size_bytes: int) -> Call:
        """Return a call that overwrites a buffer of `size_bytes` on `device`; on a GPU it then reads as many others."""
        ...

    def capture(self, run: Call, device: str, calls: int) -> Call | None:
        """Return a call that replays `calls` calls of `run` as one graph, without their launches.

        None where the library or the device has no graphs.
        """
        ...

    def set_threads(self, count: int) -> None:
        """Pin the CPU threads of this library.

        Raises:
            Unsupported: the count cannot be set.
        """
        ...

    def versions(self) -> Mapping[str, str]:
        """Return the versions that explain this library's numbers, by name."""
        ...

    def slow_product(self, dtype: DType, environment: Environment) -> str | None:
        """Return why this library's large products in `dtype` can be slow on that CPU, and what to change.

        Half a sentence; None when it has no kernels of its own to choose from.
        """
        ...


@cache
def load_backend(name: str) -> Backend:
    """Return the backend module called `name`; this loads nothing heavy.

    Raises:
        InvalidInput: no such backend.
    """
    if name not in BACKENDS:
        raise InvalidInput.of("backend", name, BACKENDS)
    return cast(Backend, import_module(f"gpuexplore.backends.{name}"))
