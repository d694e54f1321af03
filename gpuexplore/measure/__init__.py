"""How one case becomes one result: build, guard, check, warm up, sample in rounds, flag."""

import os
from collections.abc import Mapping
from types import MappingProxyType

# Idle pool threads spin before they sleep: OpenBLAS for 2**28 clock ticks (0.1 s), libgomp for milliseconds. On a
# machine whose cores are all in use they take a core from the next library, which then runs up to 100 times slower.
# Calls that follow each other at once, as samples do, never see the difference; see docs/decisions/0002.
POOL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"OPENBLAS_THREAD_TIMEOUT": "18", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}
)


def shorten_idle_spinning() -> None:
    """Set POOL_SETTINGS where nothing else is set; heeded by libraries that are loaded afterwards."""
    for name, value in POOL_SETTINGS.items():
        os.environ.setdefault(name, value)
