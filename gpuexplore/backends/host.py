"""What the libraries that work in host memory share: arrays, poison, flush and the host's clock."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import gpuexplore
from gpuexplore.backends.contract import DriverFacts
from gpuexplore.backends.timer import Call, Clock, HostTimer
from gpuexplore.dtypes import DType, Stored
from gpuexplore.model import Environment

AVX512_NAMES = frozenset({"X86_V4", "AVX512F", "AVX512_SKX"})  # what NumPy calls it, by version
LIBRARIES = ("numpy", "numba", "llvmlite", "numba-cuda", "torch")  # what activities are done with


def is_installed(*modules: str) -> bool:
    """Return whether every one of `modules` can be imported, without importing it."""
    try:
        return all(find_spec(module) is not None for module in modules)
    except ModuleNotFoundError:  # the parent package of a dotted name is missing
        return False


def installed_versions() -> dict[str, str]:
    """Return the versions of what does the work, this package among it, by name; what is not installed is left out."""
    found = {"gpuexplore": gpuexplore.__version__} | {name: version_of(name) for name in LIBRARIES}
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


def load(array: npt.NDArray[Any], values: Stored) -> None:
    """Overwrite `array` with `values`."""
    array.view(values.dtype)[...] = values


def stored(array: npt.NDArray[Any], dtype: DType) -> Stored:
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
    return bool(AVX512_NAMES & set(environment.libraries.get("numpy_vectors", "").split()))


def slow_product(dtype: DType, environment: Environment) -> None:
    """Return None: what is compiled for this machine chooses no kernel."""
