"""The link between a host and its GPU: what PCI Express could move at most, by generation and lanes.

Transfers per second and lane times the share of bits that are data: 8b/10b up to generation 2, 128b/130b from 3 on, 242
of 256 bytes in generation 6. What packets cost on top is not taken off. https://en.wikipedia.org/wiki/PCI_Express
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpuexplore.devices.nvml import ask, handle_of, load_nvml
from gpuexplore.hardware import Device

SOURCE = "https://en.wikipedia.org/wiki/PCI_Express#Comparison_table"
LANE_BYTES_PER_S: Mapping[int, float] = MappingProxyType(
    {
        1: 2.5e9 * 8 / 10 / 8,
        2: 5e9 * 8 / 10 / 8,
        3: 8e9 * 128 / 130 / 8,
        4: 16e9 * 128 / 130 / 8,
        5: 32e9 * 128 / 130 / 8,
        6: 64e9 * 242 / 256 / 8,
    }
)


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
        lane = LANE_BYTES_PER_S.get(self.generation)
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
