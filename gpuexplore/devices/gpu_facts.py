"""What a driver says about one GPU, whoever was asked: NVML, or nvidia-smi where pynvml is missing."""

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
