"""NVIDIA's management library: the driver's facts about its GPUs and their links, without creating a CUDA context.

Functions take the `pynvml` module as an argument, so that tests hand in another object. What a
driver does not answer (old boards, MIG instances, virtual GPUs) is None.

What a link could move at most follows from its generation and lanes: transfers per second and lane times the share of
bits that are data, 8b/10b up to generation 2, 128b/130b from 3 on, 242 of 256 bytes in generation 6. What packets cost
on top is not taken off. https://en.wikipedia.org/wiki/PCI_Express
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpuexplore.core.hardware import Device
from gpuexplore.hardware.formula import multiprocessors_from_cores


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


SOURCE = "https://en.wikipedia.org/wiki/PCI_Express#Comparison_table"


@dataclass(frozen=True, slots=True)
class Link:
    """A PCI Express link, by its generation and its lanes."""

    generation: int
    lanes: int

    @property
    def title(self) -> str:
        """As people say it: ``PCIe 3.0 x16``."""
        return f"PCIe {self.generation}.0 x{self.lanes}"

    @property
    def bytes_per_s(self) -> float | None:
        """Theoretical peak in one direction; None for a generation that is not in the table."""
        lane_bytes_per_s = {
            1: 2.5e9 * 8 / 10 / 8,
            2: 5e9 * 8 / 10 / 8,
            3: 8e9 * 128 / 130 / 8,
            4: 16e9 * 128 / 130 / 8,
            5: 32e9 * 128 / 130 / 8,
            6: 64e9 * 242 / 256 / 8,
        }
        lane = lane_bytes_per_s.get(self.generation)
        return None if lane is None else lane * self.lanes


def link_of(device: Device, nvml: Any | None = None) -> Link | None:
    """Return the fastest link that a GPU and this system agree on; None where NVML does not say.

    An idle GPU lowers its link, so the current one would say too little.

    Args:
        nvml: the `pynvml` module; None loads it.
    """
    asked = nvml or load_nvml()
    if asked is None or device.uuid is None:
        return None
    handle = handle_of(asked, device.uuid)
    if handle is None:
        return None
    generation = ask(asked, "nvmlDeviceGetMaxPcieLinkGeneration", handle)
    lanes = ask(asked, "nvmlDeviceGetMaxPcieLinkWidth", handle)
    return Link(generation, lanes) if generation and lanes else None


@cache
def load_nvml() -> Any | None:
    """Return pynvml, initialised once for this process; None without the package or without a driver."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def ask(nvml: Any, question: str, *arguments: Any) -> Any | None:
    """Return NVML's answer, or None when this driver or device has none."""
    function: Callable[..., Any] | None = getattr(nvml, question, None)
    if function is None:
        return None
    with suppress(nvml.NVMLError):
        return function(*arguments)
    return None


def _text(answer: Any | None) -> str | None:
    """Return NVML's string; old bindings answer in bytes."""
    return answer.decode() if isinstance(answer, bytes) else answer


def handle_of(nvml: Any, uuid: str) -> Any | None:
    """Return the handle of the GPU or MIG instance with this UUID."""
    return ask(nvml, "nvmlDeviceGetHandleByUUID", uuid) or ask(nvml, "nvmlDeviceGetHandleByUUID", uuid.encode())


def driver_cuda() -> tuple[int, int] | None:
    """Return major and minor of the newest CUDA that the driver supports; None without a driver that says so."""
    nvml = load_nvml()
    version = None if nvml is None else ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    return None if not version else (version // 1000, version % 1000 // 10)


def is_cut_into_instances(uuid: str) -> bool:
    """Return whether MIG cuts the GPU with this UUID into instances; CUDA then runs on one of them."""
    nvml = load_nvml()
    handle = None if nvml is None else handle_of(nvml, uuid)
    return handle is not None and _is_cut(nvml, handle)


def highest_clock_hz(uuid: str) -> float | None:
    """Return the clock beyond which the GPU with this UUID never goes; a board boosts up to it while it stays cool."""
    nvml = load_nvml()
    handle = None if nvml is None else handle_of(nvml, uuid)
    return None if handle is None else _clock(nvml, handle, "NVML_CLOCK_SM")


def is_lost(uuid: str) -> bool:
    """Return whether the driver says that the GPU with this UUID fell off the bus or is otherwise out of reach."""
    nvml = load_nvml()
    if nvml is None:
        return False
    try:
        nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByUUID(uuid))
    except nvml.NVMLError as error:
        return getattr(error, "value", None) == 15  # NVML_ERROR_GPU_IS_LOST
    return False


def read_gpus(nvml: Any, visible: str | None) -> tuple[GpuFacts, ...]:
    """Return the GPUs that CUDA sees under CUDA_VISIBLE_DEVICES=`visible`, in CUDA's order."""
    count = ask(nvml, "nvmlDeviceGetCount") or 0
    handles = (ask(nvml, "nvmlDeviceGetHandleByIndex", index) for index in range(count))
    uuids = [_text(ask(nvml, "nvmlDeviceGetUUID", handle)) or "" for handle in handles if handle is not None]
    found = ((uuid, handle_of(nvml, uuid)) for uuid in visible_uuids(uuids, visible))
    return tuple(_read(nvml, handle, uuid) for uuid, handle in found if handle is not None)


def _read(nvml: Any, handle: Any, uuid: str) -> GpuFacts:
    version = ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    capability = None if version is None else f"{version[0]}.{version[1]}"
    pci_number = getattr(ask(nvml, "nvmlDeviceGetPciInfo", handle), "pciDeviceId", None)
    limit_mw = ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
    cut = _is_cut(nvml, handle)
    return GpuFacts(
        name=_text(ask(nvml, "nvmlDeviceGetName", handle)) or "NVIDIA GPU without a name",
        uuid=uuid,
        memory_bytes=getattr(ask(nvml, "nvmlDeviceGetMemoryInfo", handle), "total", None),
        multiprocessors=None if cut else _multiprocessors(nvml, handle, capability),
        compute_capability=capability,
        clock_hz=_clock(nvml, handle, "NVML_CLOCK_SM"),
        memory_clock_hz=_clock(nvml, handle, "NVML_CLOCK_MEM"),
        bus_bits=ask(nvml, "nvmlDeviceGetMemoryBusWidth", handle),
        driver=_text(ask(nvml, "nvmlSystemGetDriverVersion")),
        pci_id=None if pci_number is None else pci_id_of(pci_number),
        power_limit_w=limit_mw / 1e3 if limit_mw else None,
        sliced=cut or uuid.startswith("MIG-"),
    )


def _is_cut(nvml: Any, handle: Any) -> bool:
    return bool((ask(nvml, "nvmlDeviceGetMigMode", handle) or (0,))[0])


def _multiprocessors(nvml: Any, handle: Any, capability: str | None) -> int | None:
    """Return the count of a MIG instance from its attributes, else derive it from the CUDA cores."""
    attributes = ask(nvml, "nvmlDeviceGetAttributes", handle)
    counted = getattr(attributes, "multiprocessorCount", None)
    return counted or multiprocessors_from_cores(capability, ask(nvml, "nvmlDeviceGetNumGpuCores", handle))


def _clock(nvml: Any, handle: Any, clock: str) -> float | None:
    mhz = ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, getattr(nvml, clock))
    return mhz * 1e6 if mhz else None
