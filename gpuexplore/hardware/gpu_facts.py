"""The GPUs that CUDA sees, and what a driver says about one: NVML, or nvidia-smi where pynvml is missing.

Management tools ignore CUDA_VISIBLE_DEVICES, so we apply it ourselves, as CUDA reads it:
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU as its driver describes it; unknown is None.

    Attributes:
        multiprocessors: of the part that CUDA runs on; None when MIG hides which part that is.
        bus_bits: width of the memory bus.
        pci_id: vendor and device, e.g. `10de:2335`.
        power_limit_w: what the driver allows the whole GPU now.
        sliced: the GPU is cut into MIG instances, or is one: whole-device figures do not apply.
    """

    name: str
    uuid: str | None = None
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    compute_capability: str | None = None
    clock_hz: float | None = None
    memory_clock_hz: float | None = None
    bus_bits: int | None = None
    driver: str | None = None
    pci_id: str | None = None
    power_limit_w: float | None = None
    sliced: bool = False


def pci_id_of(number: int) -> str:
    """Return `10de:2335` for 0x233510DE: NVIDIA's tools give the device's half first."""
    return f"{number & 0xFFFF:04x}:{number >> 16:04x}"


def visible_uuids(uuids: Sequence[str], variable: str | None) -> tuple[str, ...]:
    """Return the UUIDs that CUDA sees, in its order: the first is `cuda:0`.

    Args:
        uuids: of all GPUs, in bus order.
        variable: CUDA_VISIBLE_DEVICES; None when it is not set.

    An index, a UUID, the unique beginning of one, and a MIG instance's UUID are accepted; the first
    entry that names no device ends the list, and a repeated device leaves none, as in CUDA.
    """
    if variable is None:
        return tuple(uuids)
    seen: list[str] = []
    for entry in variable.split(","):
        uuid = _named(uuids, entry.strip())
        if uuid is None:
            break
        seen.append(uuid)
    return tuple(seen) if len(set(seen)) == len(seen) else ()


def _named(uuids: Sequence[str], entry: str) -> str | None:
    if entry.startswith("MIG-"):
        return entry
    if entry.isascii() and entry.isdigit():
        return uuids[int(entry)] if int(entry) < len(uuids) else None
    matching = [uuid for uuid in uuids if entry.startswith("GPU-") and uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None
