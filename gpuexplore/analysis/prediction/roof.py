"""The least times that a device's printed limits leave a call: no prediction is below them, and no stated time can be.

A peak may be passed as far as clocks allow. A data-center or embedded GPU runs no faster than the highest clock that
its datasheet states, which is above the one that some matrix units are rated for; cards for games and workstations
boost beyond the clock on theirs. Bandwidth has no such clock.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.gpu.facts import family_of
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES, rated_clock_hz
from gpuexplore.core.dtypes import format_named
from gpuexplore.core.model import Bandwidth, Case, Device, Peak
from gpuexplore.hardware import row_of
from gpuexplore.measure.flags import FAR_ABOVE, FAR_ABOVE_A_CEILING
from gpuexplore.operations import operation_named

BOOSTS_FURTHER = re.compile(r"GeForce|GTX|RTX|TITAN|Quadro|Radeon|GB10|Apple")  # in names: clocks are no maximum


@dataclass(frozen=True, slots=True)
class DeviceLimit:
    """One limit of a device and what a call needs of it at least.

    Attributes:
        bound: `compute` or `memory`.
        amount: FLOPs or bytes.
        limit: the printed or measured peak or bandwidth.
        per_s: the same as FLOP/s or bytes/s.
        headroom: how many times that a device of this name can reach.
    """

    bound: Bound
    amount: float
    limit: Peak | Bandwidth
    per_s: float
    headroom: float

    @property
    def least_s(self) -> float:
        """Seconds at the most that the device can reach."""
        return self.amount / self.per_s / self.headroom

    @property
    def is_measured(self) -> bool:
        """True for a measured ceiling, which a run may exceed."""
        return PEAK_SOURCES[self.limit.kind].basis == "measured"


def roofs(case: Case, device: Device, peak: Peak | None) -> Iterator[DeviceLimit]:
    """Yield each limit that is known.

    Args:
        peak: of the units that do the arithmetic; None where it is unknown.
    """
    operation = operation_named(case.operation)
    memory = device.bandwidth
    if peak is not None and (flop_count := operation.flop_count(case.shape)):
        # A fast algorithm takes at least one multiplication for each r x r of a convolution (Winograd, 1980).
        least = flop_count / (case.shape["r"] ** 2 if family_of(case) == "convolution" else 1)
        yield DeviceLimit("compute", least, peak, peak.flop_per_s, _headroom(device, peak))
    if memory is not None and device.cache_bytes is not None:  # caches may have delivered what fits in them
        moved = operation.byte_count(case.shape, format_named(case.dtype)) - device.cache_bytes
        measured = PEAK_SOURCES[memory.kind].basis == "measured"
        yield DeviceLimit("memory", max(moved, 0), memory, memory.bytes_per_s, FAR_ABOVE_A_CEILING if measured else 1.0)


@lru_cache(maxsize=1024)
def _headroom(device: Device, peak: Peak) -> float:
    """Return how many times its peak a device can compute."""
    if PEAK_SOURCES[peak.kind].basis == "measured":
        return FAR_ABOVE_A_CEILING
    if boosts_further(device):
        return FAR_ABOVE
    rated_hz = rated_clock_hz(device, peak)
    return max((device.clock_hz or 0.0) / rated_hz, 1.0) if rated_hz else 1.0


def boosts_further(device: Device) -> bool:
    """Return whether its clock can be above the highest that is stated; so can that of a device of no row."""
    row = row_of(device)
    return row is None or BOOSTS_FURTHER.search(row.name) is not None
