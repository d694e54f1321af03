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


def prepare_process() -> None:
    """Set what a process that measures needs, where nothing else is set; before libraries are loaded."""
    os.environ.update(process_settings())


def process_settings() -> Mapping[str, str]:
    """Return the variables of a process that measures: its pools' spinning, and where compiled kernels are kept."""
    wanted = {**POOL_SETTINGS, KERNEL_CACHE_VARIABLE: str(cache_directory() / "numba" / shared_kernel_code())}
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


def shared_kernel_code() -> str:
    """Return a fingerprint of the code that kernels of several files call.

    Numba compiles a kernel again when its own file has changed, and does not notice what it calls elsewhere.
    """
    files = sorted((Path(__file__).parents[1] / "kernels").rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
