"""Locks of the operating system, one per host: they end with the process that holds them, however it ends."""

import re

from filelock import BaseFileLock, FileLock

from gpuexplore.devices.directories import data_directory


def supervisor_lock() -> BaseFileLock:
    """Return the lock that the host's one supervisor holds all its life."""
    return _lock("supervisor")


def starter_lock() -> BaseFileLock:
    """Return the lock that is held while a supervisor is being started."""
    return _lock("starter")


def device_lock(device: str) -> BaseFileLock:
    """Return the lock to hold while `device`, e.g. ``cuda:0``, is measured: numbers of two never mix."""
    return _lock("device-" + re.sub(r"[^\w.-]", "-", device))


def _lock(name: str) -> BaseFileLock:
    directory = data_directory() / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    return FileLock(directory / f"{name}.lock")
