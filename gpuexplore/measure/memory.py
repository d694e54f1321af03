"""How much memory a device has free right now."""

import os

from gpuexplore.devices import free_gpu_bytes
from gpuexplore.model import Device

USABLE_SHARE = 0.9  # allocators and the driver need the rest


def free_bytes(device: Device) -> int | None:
    """Return the bytes a case may use; None where nothing states them: no limit is invented."""
    free = _free_host_bytes() if device.kind == "cpu" else _free_device_bytes(device)
    return None if free is None else int(free * USABLE_SHARE)


def _free_device_bytes(device: Device) -> int | None:
    return free_gpu_bytes(device.uuid) if device.uuid else None


def _free_host_bytes() -> int | None:
    try:
        from psutil import virtual_memory
    except ModuleNotFoundError:  # a bare GPU machine
        names = os.sysconf_names
        known = "SC_AVPHYS_PAGES" in names and "SC_PAGE_SIZE" in names
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else None
    return int(virtual_memory().available)
