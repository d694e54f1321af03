"""Spin time of idle threads of a pool: libraries read it when they are loaded, so it is set before NumPy is.

Threads spin before they sleep: OpenBLAS's for 2**28 clock ticks (0.1 s), libgomp's for milliseconds. On a machine whose
cores are all in use they take a core from the next library, which then runs up to 100 times slower, or has to wait for
them: 36 products took 15 s in a process in which NumPy was loaded first, and 6 s in this way. Calls that follow each
other at once, as samples do, never see the difference; see docs/decisions/0002.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

POOL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"OPENBLAS_THREAD_TIMEOUT": "18", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}
)


PRIORITY = -10
THREADS = Path("/proc/self/task")


def raise_priority(priority: int = PRIORITY) -> None:
    """Raise the priority of this process, with the threads that its pools have already; or set another one.

    Linux has a priority for each thread: one of a pool that was there before, as OpenBLAS's is once NumPy is loaded,
    would share its core evenly with whatever else runs, and every call wait for it.

    Raises:
        PermissionError: it is the privilege of root.
    """
    threads = [int(thread.name) for thread in THREADS.iterdir()] if THREADS.is_dir() else [0]
    for thread in threads:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.setpriority(os.PRIO_PROCESS, thread, priority)


def shorten_spinning() -> None:
    """Set the variables of pools for libraries that are loaded from now on; others in the environment stay."""
    for name, value in POOL_SETTINGS.items():
        os.environ.setdefault(name, value)
