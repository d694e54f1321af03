"""Common parts of the libraries that work in host memory: arrays, poison, flush and the host's clock."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

import gpuexplore
from gpuexplore.backends import Call, Clock, DriverFacts, HostTimer
from gpuexplore.core import Alignment, Environment
from gpuexplore.core.dtypes import DType, Stored

HUGE_PAGE_BYTES = 2**21
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
_ALIGNMENT: ContextVar[Alignment] = ContextVar("alignment", default="library")


def is_installed(*modules: str) -> bool:
    """Return whether every one of `modules` can be imported, without importing it."""
    try:
        return all(find_spec(module) is not None for module in modules)
    except ModuleNotFoundError:  # the parent package of a dotted name is missing
        return False


def installed_versions() -> dict[str, str]:
    """Return the versions of what does the work of activities, this package among it, by name."""
    return {"gpuexplore": gpuexplore.__version__, **versions_of("numpy", "numba", "llvmlite", "numba-cuda", "torch")}


def versions_of(*distributions: str) -> dict[str, str]:
    """Return the versions of those distributions that are installed, by name."""
    found = {name: version_of(name) for name in distributions}
    return {name: version for name, version in found.items() if version}


def version_of(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def driver_facts(device: str) -> DriverFacts:
    """Return nothing: CUDA knows no host memory."""
    return DriverFacts()


def load(array: np.typing.NDArray[Any], values: Stored) -> None:
    """Overwrite `array` with `values`."""
    array.view(values.dtype)[...] = values


def stored(array: np.typing.NDArray[Any], dtype: DType) -> Stored:
    """Return `array` in the storage of `dtype`: the same memory."""
    return array.view(dtype.storage)


def synchronize(device: str) -> None:
    """Return at once: host calls return when their work is done."""


def timer(device: str, clock: Clock) -> HostTimer:
    """Return the wall clock."""
    return HostTimer(clock)


def capture(run: Call, device: str, calls: int) -> None:
    """Return None: a CPU has no graphs."""


def flusher(device: str, size_bytes: int) -> Call:
    """Return a call that overwrites `size_bytes` of host memory, and so empties the caches."""
    buffer = np.zeros(max(1, size_bytes // 8), dtype=np.float64)
    return lambda: buffer.fill(1.0)


def has_avx512(environment: Environment) -> bool:
    """Return whether NumPy found AVX-512 on the CPU; False where it was not asked."""
    named = {"X86_V4", "AVX512F", "AVX512_SKX"}  # by versions of NumPy
    return bool(named & set(environment.libraries.get("numpy_vectors", "").split()))


def slow_product(dtype: DType, environment: Environment) -> None:
    """Return None: what is compiled for this machine chooses no kernel."""


# Placement of a CPU's arrays: where their library allocates them, or on boundaries of 2 MiB, in huge pages.
#
# Placement decides how often vectors straddle cache lines, which 4 kB pages collide in a cache, and how many of them a
# loop translates: NumPy's addition of 10^6 numbers takes 1.1 to 1.3 times as long in its own arrays as in huge pages on
# two Zen 4 cores, products of 128 and additions of 10^5 up to 1.9 times on a Sapphire Rapids. A caller gets what the
# library allocates, so that is what is measured unless the other is asked for.


@contextmanager
def aligned(alignment: Alignment) -> Iterator[None]:
    """Inside it, new arrays of a CPU lie there."""
    before = _ALIGNMENT.set(alignment)
    try:
        yield
    finally:
        _ALIGNMENT.reset(before)


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.typing.NDArray[Any]:
    """Return an array whose values are undefined."""
    pages = in_pages(shape, dtype)
    return np.empty(shape, dtype) if pages is None else pages


def copy_of(values: np.typing.NDArray[Any]) -> np.typing.NDArray[Any]:
    """Return a C-contiguous copy of `values`, aligned like any array of `empty`."""
    copy = empty(values.shape, values.dtype)
    copy[...] = values
    return copy


def in_pages(shape: tuple[int, ...], dtype: np.dtype) -> np.typing.NDArray[Any] | None:
    """Return an array whose first element lies on a boundary of huge pages; None where libraries allocate."""
    if _ALIGNMENT.get() == "library":
        return None
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # not on Windows
    count = prod(shape)
    memory = mmap.mmap(-1, HUGE_PAGE_BYTES * (2 + count * dtype.itemsize // HUGE_PAGE_BYTES), **private)
    if ADVICE is not None:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(ADVICE)
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
    return np.frombuffer(memory, dtype, count, offset=-address % HUGE_PAGE_BYTES).reshape(shape)
