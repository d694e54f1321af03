"""Locks of the operating system, one per host: they end with the process that holds them, however it ends."""

import re

from filelock import BaseFileLock, FileLock

from gpuexplore.devices.directories import data_directory
from gpuexplore.model import Device


def supervisor_lock() -> BaseFileLock:
    """Return the lock that the host's one supervisor holds all its life."""
    return _lock("supervisor")


def starter_lock() -> BaseFileLock:
    """Return the lock that is held while a supervisor is being started."""
    return _lock("starter")


def device_lock(device: Device) -> BaseFileLock:
    """Return the lock to hold while `device` is measured: only one process of this host may at a time.

    By its UUID, for CUDA_VISIBLE_DEVICES gives one GPU another number in each process.
    """
    return _lock("device-" + re.sub(r"[^\w.-]", "-", device.uuid or device.id))


def _lock(name: str) -> BaseFileLock:
    directory = data_directory() / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    return FileLock(directory / f"{name}.lock")
