"""How long idle threads of a pool spin: libraries read that when they are loaded, so it is set before NumPy is.

Threads spin before they sleep: OpenBLAS's for 2**28 clock ticks (0.1 s), libgomp's for milliseconds. On a machine whose
cores are all in use they take a core from the next library, which then runs up to 100 times slower, or has to wait for
them: 36 products took 15 s in a process in which NumPy was loaded first, and 6 s in this way. Calls that follow each
other at once, as samples do, never see the difference; see docs/decisions/0002.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType

POOL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"OPENBLAS_THREAD_TIMEOUT": "18", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}
)


def shorten_spinning() -> None:
    """Set the variables of pools for libraries that are loaded from now on; others in the environment stay."""
    for name, value in POOL_SETTINGS.items():
        os.environ.setdefault(name, value)
