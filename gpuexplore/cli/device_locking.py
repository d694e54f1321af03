"""The lock of a device of this host, and the process that holds it; a bare machine has no locks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from gpuexplore.core.model import Device

NEEDED = "psutil"


@contextmanager
def locked(device: Device) -> Iterator[None]:
    """Hold the lock of `device`, as whatever measures on this host does."""
    if not _have_locks():
        yield
        return
    from gpuexplore.jobs.locks import device_lock

    report_lock_holder(device)
    with device_lock(device):
        yield


def report_lock_holder(device: Device) -> None:
    """Name on standard error the process that holds the lock of `device` now, if one does."""
    if not _have_locks():
        return
    from gpuexplore.jobs.locks import device_lock

    if holder := device_lock(device).holder():
        print(f"{device.id} is being used by {holder}: waiting for it", file=sys.stderr, flush=True)


def _have_locks() -> bool:
    try:
        import_module(NEEDED)
    except ImportError:
        return False
    return True
