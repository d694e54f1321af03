"""Time of collectives between GPUs: latency, and bytes over the bus bandwidth that NCCL reaches on each kind of link.

The shares of a link's peak are of published measurements (`all_reduce.csv`): A100 and H20 over NVLink, RTX 6000 Ada
over PCIe. Bus bandwidth is NCCL's: what each GPU sends, whatever their number.
https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from gpuexplore.core.model import Device
from gpuexplore.features.model.analysis.plan import HOST_GPUS
from gpuexplore.hardware import row_of

STEP_S = 4e-6  # of each further GPU of a collective
FIRST_S = 6e-6
RAMP = 4e-3  # root of a second: short messages do not fill a link
SHARES: Mapping[str, float] = {  # of a link's peak that collectives reach
    "link": 0.78,
    "switch": 1.05,  # NVSwitch of Hopper and later adds up in the switch, with all eight GPUs
    "PCIe": 0.37,
    "network": 0.7,
    # of servers' kernels for short messages, which have few blocks: A100 and H100, 2 to 8 GPUs, 0.5 KB to 2 MB in
    # https://github.com/sgl-project/sglang/pull/2688 and https://github.com/sgl-project/sglang/pull/2904
    "one kernel": 0.15,
}
ASSUMED: Mapping[str, float] = {  # bytes a second
    "PCIe": 31.5e9,  # 4.0 x16
    "network": 200e9,  # of a host of eight A100s, 1.6 Tb/s; a ring enters it over each of its cards
    "network of Hopper": 400e9,  # of a host of eight H100s, 3.2 Tb/s
}
REDUCING_SWITCHES = ("Hopper", "Blackwell")


@dataclass(frozen=True, slots=True)
class GpuLink:
    """The way between GPUs.

    Attributes:
        title: e.g. ``NVLink``.
        bytes_per_s: its peak in one direction.
        share: of the peak that collectives reach, the bus bandwidth.
        is_assumed: whether no published measurement is of such a link.
    """

    title: str
    bytes_per_s: float
    share: float
    is_assumed: bool

    @property
    def bus_bytes_per_s(self) -> float:
        """Bus bandwidth of long messages."""
        return self.bytes_per_s * self.share

    def all_reduce_s(self, byte_count: float, workers: int, *, is_served: bool = False) -> float:
        """Return the seconds of an all-reduce of `byte_count` on each of `workers` GPUs.

        Args:
            is_served: servers have a kernel for short ones over NVLink: a GPU reads all that others have (one shot), or
                its share of that and then the sums of the others (two shots).
        """
        ring_s = 2 * self.gather_s(byte_count, workers) - FIRST_S if workers > 1 else 0.0
        read_s = byte_count * (workers - 1) / self.bytes_per_s / SHARES["one kernel"]
        has_kernel = is_served and self.title not in ("PCIe", "network")
        return min(ring_s, FIRST_S + min(read_s, STEP_S + 2 * read_s / workers)) if has_kernel else ring_s

    def send_s(self, byte_count: float) -> float:
        """Return the seconds of sending `byte_count` from one GPU to another, as all of a host do at once."""
        share = min(self.share, SHARES["link"]) / (HOST_GPUS if self.title == "network" else 1)
        return FIRST_S + byte_count / (self.bytes_per_s * share)

    def gather_s(self, byte_count: float, workers: int) -> float:
        """Return the seconds of an all-gather or reduce-scatter of `byte_count` in all."""
        sent = byte_count * (workers - 1) / workers
        latency_s = FIRST_S + STEP_S * (workers - 1) / 2 + RAMP * sqrt(sent / self.bytes_per_s)
        return latency_s + sent / self.bus_bytes_per_s if workers > 1 else 0.0


def link_of(device: Device, workers: int, network_gbs: float | None = None, *, sharing: int = 1) -> GpuLink:
    """Return the slowest link between so many GPUs, eight of them in a host.

    Args:
        network_gbs: GB/s of a host to others; None: as DGX machines of its generation have.
        sharing: groups that use a host's network at once, as each GPU of a tensor-parallel group has one of its own.
    """
    row = row_of(device)
    if workers > HOST_GPUS:
        own = link_of(device, HOST_GPUS)
        usual = ASSUMED["network of Hopper" if row and row.architecture in REDUCING_SWITCHES else "network"]
        peak = min((network_gbs * 1e9 if network_gbs else usual) / min(sharing, HOST_GPUS), own.bytes_per_s)
        return GpuLink("network", peak, min(SHARES["network"], own.share), is_assumed=not network_gbs)
    if row and row.link_bytes_per_s:
        name = "NVLink" if row.vendor == "NVIDIA" else "Infinity Fabric"
        share = SHARES["switch" if row.architecture in REDUCING_SWITCHES and workers == HOST_GPUS else "link"]
        return GpuLink(name, row.link_bytes_per_s / 2, share, is_assumed=row.vendor != "NVIDIA")
    known = row.pcie_bytes_per_s if row else None
    return GpuLink("PCIe", known or ASSUMED["PCIe"], SHARES["PCIe"], is_assumed=workers > 2 or not known)
