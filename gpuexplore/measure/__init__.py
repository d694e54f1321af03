"""How one case becomes one result: build, guard, check, warm up, sample in rounds, flag."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from gpuexplore.devices import cache_directory

KERNEL_CACHE_VARIABLE = "NUMBA_CACHE_DIR"

# Idle pool threads spin before they sleep: OpenBLAS for 2**28 clock ticks (0.1 s), libgomp for milliseconds. On a
# machine whose cores are all in use they take a core from the next library, which then runs up to 100 times slower.
# Calls that follow each other at once, as samples do, never see the difference; see docs/decisions/0002.
POOL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"OPENBLAS_THREAD_TIMEOUT": "18", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}
)


# CUDA would put the fastest GPU first; NVML, from which devices get their names and peaks, counts along the bus.
GPU_NUMBERING: Mapping[str, str] = MappingProxyType({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


def prepare_process() -> None:
    """Set the variables of a process that measures, before libraries are loaded."""
    os.environ.update(process_settings())


def process_settings() -> Mapping[str, str]:
    """Return the variables of a process that measures: spinning of its pools, numbers of GPUs, compiled kernels.

    Where the environment has others they stay, but for the numbers of GPUs: `cuda:1` means one GPU everywhere.
    """
    wanted = {**POOL_SETTINGS, KERNEL_CACHE_VARIABLE: str(cache_directory() / "numba" / shared_kernel_code())}
    return {**{name: os.environ.get(name, value) for name, value in wanted.items()}, **GPU_NUMBERING}


def shared_kernel_code() -> str:
    """Return a fingerprint of the code that kernels of several files call.

    Numba compiles a kernel again when its own file has changed, and does not notice what it calls elsewhere.
    """
    files = sorted((Path(__file__).parents[1] / "kernels").rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
