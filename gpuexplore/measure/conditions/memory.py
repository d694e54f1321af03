"""How much memory a device has free right now."""

import mmap
from pathlib import Path

from gpuexplore.devices import TORCH_KINDS, free_gpu_bytes, memory_by_sysconf
from gpuexplore.model import Device

STATM = Path("/proc/self/statm")  # pages: of the address space, resident, ...
USABLE_SHARE = 0.9  # allocators and the driver need the rest


def free_bytes(device: Device) -> int | None:
    """Return the bytes a case may use; None where nothing states them: no limit is invented."""
    free = free_host_bytes() if device.kind == "cpu" else _free_device_bytes(device)
    return None if free is None else int(free * USABLE_SHARE)


def resident_bytes() -> int:
    """Return the memory this process holds; 0 where the system does not tell, which a note on the device says."""
    try:
        with STATM.open(encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def _free_device_bytes(device: Device) -> int | None:
    """Return what the driver says is free; of a device that only torch finds all it has, as nothing says more."""
    if device.kind in TORCH_KINDS:
        return device.memory_bytes
    return free_gpu_bytes(device.uuid) if device.uuid else None


def free_host_bytes() -> int | None:
    """Return the memory of this host that is free, or would be at once; None where nothing states it."""
    try:
        from psutil import virtual_memory

        return int(virtual_memory().available)
    except (ModuleNotFoundError, OSError):  # a bare GPU machine; one whose /proc cannot be read
        return memory_by_sysconf("SC_AVPHYS_PAGES")
