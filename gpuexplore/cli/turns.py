"""Turns on a device of this host, and for whom one waits; on a bare machine, without locks, nobody is waited for."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from gpuexplore.core.model import Device

NEEDED = ("filelock", "psutil")


@contextmanager
def turn(device: Device) -> Iterator[None]:
    """Hold the lock of `device`, as whatever measures on this host does."""
    if not _have_locks():
        yield
        return
    from gpuexplore.jobs.locks import device_lock

    say_who_is_waited_for(device)
    with device_lock(device):
        yield


def say_who_is_waited_for(device: Device) -> None:
    """Say on standard error who measures on `device` now, if somebody does."""
    if not _have_locks():
        return
    from gpuexplore.jobs.locks import device_lock

    if holder := device_lock(device).holder():
        print(f"{device.id} is being used by {holder}: waiting for it", file=sys.stderr, flush=True)


def _have_locks() -> bool:
    try:
        for name in NEEDED:
            import_module(name)
    except ImportError:
        return False
    return True
