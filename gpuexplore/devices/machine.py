"""Whether a CPU is a machine of its own, a virtual one, or one that shares its cores with others.

Linux tells a virtual machine by the flag ``hypervisor``; whether others use its cores it tells by stolen time at most,
which many hosts do not account. What remains is to look: the clock probe of cores that are shared varies.
"""

from collections.abc import Sequence
from pathlib import Path

from gpuexplore.devices.cpu import ROOT, cpu_flags, read_line
from gpuexplore.hardware import MachineKind
from gpuexplore.statistics import quantile

STOLEN_ABOVE = 0.005  # of the time since the machine started
FEWEST_PROBES = 128  # neighbours come and go: one probe in sixty met some on a shared machine
STEADY_ABOVE = 0.93  # the slowest probe, of the fastest tenth: clocks of quiet cores change by less
VIRTUAL_PRODUCTS = ("kvm", "qemu", "virtual", "vmware", "xen", "hvm domu", "bochs", "google compute", "ec2")


def machine_kind(probes_flop_per_s: Sequence[float] = (), root: Path = ROOT) -> MachineKind:
    """Return the kind of machine; what cannot be told is shared.

    Args:
        probes_flop_per_s: what the clock probe gave in earlier and later measurements.
        root: where Linux's files are.
    """
    virtual = _is_virtual(root)
    if virtual is False:
        return "bare metal"
    if virtual is None or (_stolen_share(root) or 0.0) > STOLEN_ABOVE or len(probes_flop_per_s) < FEWEST_PROBES:
        return "shared"
    steady = min(probes_flop_per_s) >= STEADY_ABOVE * quantile(probes_flop_per_s, 0.9)
    return "virtual" if steady else "shared"


def _is_virtual(root: Path) -> bool | None:
    """Return whether a hypervisor is beneath; None where nothing tells, as on other systems than Linux."""
    flags = cpu_flags(root)
    if "sse2" in flags:  # an x86 CPU, which has the flag
        return "hypervisor" in flags
    names = [read_line(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    product = " ".join(name for name in names if name).casefold()
    return any(word in product for word in VIRTUAL_PRODUCTS) if product else None


def _stolen_share(root: Path) -> float | None:
    """Return the share of time since the start that the host gave to others; None where it is not accounted."""
    name, *fields = (read_line(root / "proc/stat") or "").partition("\n")[0].split() or [""]
    if name != "cpu" or len(fields) < 8 or not all(map(str.isdigit, fields[:8])):
        return None
    ticks = [int(field) for field in fields[:8]]
    busy = sum(ticks) - ticks[3] - ticks[4]  # without idle time and time waiting for disks
    return ticks[7] / busy if busy else None
