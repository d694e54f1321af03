"""What a driver says about one GPU, whoever was asked: NVML, or nvidia-smi where pynvml is missing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU as its driver describes it; unknown is None.

    Attributes:
        multiprocessors: of the part that CUDA runs on; None when MIG hides which part that is.
        bus_bits: width of the memory bus.
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
    sliced: bool = False
