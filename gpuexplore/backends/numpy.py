"""NumPy: host memory, BLAS threads pinned through threadpoolctl."""

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpuexplore.backends import host
from gpuexplore.backends.host import (  # noqa: F401 parts of the contract
    capture,
    driver_facts,
    flusher,
    load,
    stored,
    synchronize,
    timer,
)
from gpuexplore.core import Device, Environment, Unsupported
from gpuexplore.core.dtypes import DType, Stored

INSTALL = "pip install numpy"
DEVICE_KINDS: tuple[str, ...] = ("cpu",)
OPENBLAS_PIN = "scipy_openblas_set_num_threads64_"


def is_available() -> bool:
    """Return True: gpuexplore itself needs NumPy."""
    return True


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why NumPy cannot compute in `dtype`: it knows no TF32, and bf16 through ml_dtypes only."""
    if dtype.matrix_only:
        return f"{dtype.name} exists only inside a GPU's matrix units; {device.name} has none"
    if dtype.storage.kind != "f" and not host.is_installed("ml_dtypes"):
        return f"NumPy has no {dtype.name}: pip install ml_dtypes"
    return None


def to_device(values: Stored, dtype: DType, device: str) -> np.typing.NDArray[Any]:
    """Return a contiguous copy."""
    return host.copy_of(values).view(_numpy_dtype(dtype))


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> np.typing.NDArray[Any]:
    """Return an uninitialised array."""
    return host.empty(shape, _numpy_dtype(dtype))


def poison(array: np.typing.NDArray[Any]) -> None:
    """Fill `array` with NaN."""
    array.fill(np.nan)


def set_threads(count: int) -> None:
    """Pin BLAS threads: through threadpoolctl, or on a bare machine by OpenBLAS's own function.

    Raises:
        Unsupported: there is neither, and the environment does not pin the same count.
    """
    if host.is_installed("threadpoolctl"):
        _pools().limit(limits=count)
    elif pin := _openblas_pin():
        pin(count)
    elif os.environ.get("OPENBLAS_NUM_THREADS") != str(count):
        raise Unsupported("NumPy's threads cannot be pinned: pip install threadpoolctl")


def versions() -> Mapping[str, str]:
    """Return NumPy's version, the vectors it found, and the BLAS kernel that was chosen, which can halve its speed."""
    vectors: list[str] = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return {"numpy": np.__version__, **({"numpy_vectors": " ".join(vectors)} if vectors else {}), **_blas()}


def slow_product(dtype: DType, environment: Environment) -> str | None:
    """Return which kernel OpenBLAS chose, and the variable that chooses another; None where it suits the CPU."""
    api, _, kernel = environment.libraries.get("numpy_blas", "").partition(" ")
    kernel = kernel.rpartition(" ")[2]
    if api != "openblas" or not kernel:
        return "the BLAS kernel that NumPy uses is unknown; with OpenBLAS, OPENBLAS_CORETYPE selects it"
    asked = environment.settings.get("OPENBLAS_CORETYPE")
    if asked:
        return (
            f"OpenBLAS runs its {kernel} kernel because OPENBLAS_CORETYPE={asked} is set; start without it to compare"
        )
    for_avx512 = ("skylakex", "cooperlake", "sapphirerapids")
    if host.has_avx512(environment) and kernel.lower() not in for_avx512:
        return f"OpenBLAS chose its {kernel} kernel, though the CPU has AVX-512; start with OPENBLAS_CORETYPE=SkylakeX"
    if kernel.lower() in (*for_avx512, "haswell", "zen"):
        return None  # they use all vectors that the CPU has
    return f"OpenBLAS computes it with its {kernel} kernel"


def _numpy_dtype(dtype: DType) -> np.dtype:
    if dtype.storage.kind == "f":
        return dtype.storage
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype.array_name))


def _openblas_pin() -> Callable[[int], object] | None:
    """Return the function of the OpenBLAS inside NumPy's wheel that sets its threads; None without one."""
    for path in (Path(np.__file__).parents[1] / "numpy.libs").glob("*openblas*"):
        pin: Callable[[int], object] | None = getattr(ctypes.CDLL(str(path)), OPENBLAS_PIN, None)
        if pin is not None:
            return pin
    return None


def blas_threads() -> Callable[[], int] | None:
    """Return what reads the threads of NumPy's BLAS in a microsecond; None where threadpoolctl is missing."""
    if not host.is_installed("threadpoolctl") or not (pools := _pools().lib_controllers):
        return None
    return pools[0].get_num_threads


@cache
def _pools() -> Any:
    """Return the controller of the BLAS libraries: NumPy's is loaded with NumPy, and a search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _blas() -> dict[str, str]:
    if not host.is_installed("threadpoolctl"):
        return {}
    for pool in _pools().info():
        if "numpy" in pool["filepath"]:
            return {"numpy_blas": f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()}
    return {}
