"""The CPU of this machine, read from Linux's files where they exist; what is missing stays None.

`root` is the directory the files are looked up in, so that tests can lay out another machine.
"""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from gpuexplore.core import Device, Identity, MachineKind, quantile
from gpuexplore.hardware.accelerators import read_table

FEWEST_PROBES = 128  # other work comes and goes: one probe in sixty was disturbed on a shared machine


# Microarchitectures by family and model number: one row of microarchitectures.csv each, with its source.


def _range(first: str, last: str) -> range:
    return range(int(first, 0), int(last, 0) + 1)


MICROARCHITECTURES = tuple(  # the numbers that CPUs of one state: vendor, family, models, steppings, and its name
    (
        row["vendor"],
        int(row["family"], 0),
        _range(row["first_model"], row["last_model"]),
        _range(row["first_stepping"], row["last_stepping"]) if row["first_stepping"] else None,
        row["name"],
    )
    for row in read_table("microarchitectures.csv")
)


def _microarchitecture_of(
    vendor: str | None, family: int | None, model: int | None, stepping: int | None
) -> str | None:
    """Return e.g. `Zen 4`; None for numbers in no row: the nearest row would be a guess."""
    found = (
        name
        for *numbers, models, steppings, name in MICROARCHITECTURES
        if [vendor, family] == numbers and model in models and (steppings is None or stepping in steppings)
    )
    return next(found, None)


ROOT = Path("/")
# The CPU flags that affect the speed of matmuls and streams.
INSTRUCTION_SETS = (
    *("avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("avx512_fp16", "amx_tile", "amx_bf16", "amx_fp16", "amx_int8"),
    *("asimd", "asimdhp", "asimddp", "fphp", "bf16", "i8mm", "sve", "sve2", "svebf16", "svei8mm", "sme"),
)
ACCOUNTING_UNREADABLE = (
    "The accounting of this system (/proc) cannot be read: it is unknown whether other work used the CPU during a "
    "measurement, and whether an implementation leaks memory."
)


def cpu_device(root: Path = ROOT) -> Device:
    """Return the CPU, without peaks: those are measured (`gpuexplore.hardware.cpu_ceiling.measure`)."""
    cpus = affinity()
    khz = read_line(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq") or ""
    return Device(
        id="cpu",
        kind="cpu",
        name=cpu_name(root),
        cores=physical_cores(cpus, root),
        memory_bytes=memory_bytes(),
        cache_bytes=cache_bytes(root),
        clock_hz=int(khz) * 1e3 if khz.isdigit() else None,
        native=_native_dtypes(root),
        identity=_cpu_identity(root),
        notes=() if read_line(root / "proc/stat") else (ACCOUNTING_UNREADABLE,),
    )


def _cpu_identity(root: Path = ROOT) -> Identity | None:
    """Return the identity of the first core; None where Linux's files do not state it, as on other systems."""
    vendor = _cpuinfo(root, "vendor_id", "CPU implementer")
    family = _number(_cpuinfo(root, "cpu family", "CPU architecture"))
    model = _number(_cpuinfo(root, "model", "CPU part"))
    if vendor is None or family is None or model is None:
        return None
    variant = _number(_cpuinfo(root, "CPU variant"))
    revision = _number(_cpuinfo(root, "CPU revision"))
    stepping = _number(_cpuinfo(root, "stepping"))
    if variant is not None and revision is not None:  # of Arm
        stepping = 16 * variant + revision
    flags = _cpu_flags(root)
    return Identity(
        vendor=vendor,
        family=family,
        model=model,
        stepping=stepping,
        instruction_sets=tuple(name for name in INSTRUCTION_SETS if name in flags) if flags else None,
        cache_sizes_bytes=tuple(level.size_bytes for level in cache_levels(root)) or None,
        microarchitecture=_microarchitecture_of(vendor, family, model, stepping),
    )


def _number(text: str | None) -> int | None:
    """Return a number written in decimal or, after 0x, in hexadecimal."""
    return int(text, 16 if "x" in text else 10) if text and re.fullmatch(r"\d+|0x[0-9a-f]+", text) else None


def _cpu_flags(root: Path = ROOT) -> frozenset[str]:
    """Return the flags of the first core, by Linux's names; none where it does not list them."""
    return frozenset((_cpuinfo(root, "flags", "Features") or "").split())


def read_line(path: Path) -> str | None:
    """Return the stripped text of a small system file, or None when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _cpuinfo(root: Path, *names: str) -> str | None:
    """Return the first value under any of `names` in /proc/cpuinfo."""
    found = re.search(rf"^(?:{'|'.join(names)})\s*:\s*(.+)$", read_line(root / "proc/cpuinfo") or "", re.MULTILINE)
    return found.group(1).strip() if found else None


def cpu_name(root: Path = ROOT) -> str:
    """Return the model name of the CPU."""
    return _cpuinfo(root, "model name", "Model", "cpu model") or _sysctl_name() or platform.processor() or "CPU"


def _sysctl_name() -> str | None:
    if platform.system() != "Darwin":
        return None
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def affinity() -> tuple[int, ...]:
    """Return the logical CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def physical_cores(cpus: tuple[int, ...], root: Path = ROOT) -> int:
    """Return how many physical cores lie behind these logical CPUs, within the container's CPU quota."""
    folder = root / "sys/devices/system/cpu"
    siblings = {read_line(folder / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    on_machine = len(siblings) if (folder / "cpu0/topology").exists() else min(_cores_by_psutil(), len(cpus))
    quota, _, period = (read_line(root / "sys/fs/cgroup/cpu.max") or "").partition(" ")
    has_limit = quota.isdigit() and period.isdigit()  # the CPUs' worth of time that this cgroup may use
    return max(1, min(on_machine, ceil(int(quota) / int(period)) if has_limit else on_machine))


def _cores_by_psutil() -> int:
    try:
        import psutil
    except ImportError:
        return os.cpu_count() or 1
    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Return the machine's memory; None where nothing states it."""
    try:
        import psutil

        return int(psutil.virtual_memory().total)
    except (ImportError, OSError):  # a bare machine; one whose /proc cannot be read
        return memory_by_sysconf("SC_PHYS_PAGES")


def memory_by_sysconf(pages: str) -> int | None:
    """Return the bytes of so many pages as the C library states them; None where it does not.

    Args:
        pages: SC_PHYS_PAGES or SC_AVPHYS_PAGES.
    """
    if not {"SC_PAGE_SIZE", pages} <= set(getattr(os, "sysconf_names", ())):
        return None
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf(pages)
    return found if found > 0 else None


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache for data that the first core uses, and the logical CPUs it shares it with."""

    level: int
    size_bytes: int
    cpus: tuple[int, ...]


def cache_levels(root: Path = ROOT) -> tuple[CacheLevel, ...]:
    """Return the caches for data of the first core, the nearest first; a level of unknown size is left out."""
    folders = (root / "sys/devices/system/cpu/cpu0/cache").glob("index*")
    found = (_cache_level(folder) for folder in folders if read_line(folder / "type") != "Instruction")
    return tuple(sorted((level for level in found if level is not None), key=lambda level: level.level))


def _cache_level(folder: Path) -> CacheLevel | None:
    size = re.fullmatch(r"(\d+)K", read_line(folder / "size") or "")
    if size is None:
        return None
    text = read_line(folder / "shared_cpu_list") or "0"
    ranges = (part.partition("-") for part in text.split(","))
    cpus = tuple(number for first, _, last in ranges for number in range(int(first), int(last or first) + 1))
    return CacheLevel(int(read_line(folder / "level") or 0), int(size.group(1)) * 1024, cpus)


def cache_bytes(root: Path = ROOT) -> int | None:
    """Return the size of the last-level cache that the first core uses."""
    levels = cache_levels(root)
    return levels[-1].size_bytes if levels else None


def _native_dtypes(root: Path = ROOT) -> tuple[str, ...]:
    """Return the dtypes the CPU has arithmetic for, by its flags."""
    flags = _cpu_flags(root)
    native_flags = {  # a dtype is native with any one of these sets
        "fp64": (frozenset(),),
        "fp32": (frozenset(),),
        "bf16": (frozenset({"avx512_bf16"}), frozenset({"amx_bf16"}), frozenset({"bf16"})),
        "fp16": (frozenset({"avx512_fp16"}), frozenset({"amx_fp16"}), frozenset({"fphp", "asimdhp"})),
    }
    return tuple(dtype for dtype, sets in native_flags.items() if any(needed <= flags for needed in sets))


# The kind of machine a CPU is: one of its own, a virtual one, or one that shares its cores with others.
#
# Linux marks a virtual machine by the flag ``hypervisor``. Shared cores show as stolen time, which many hosts do not
# account, or else by a varying clock probe.


def machine_kind(probes_flop_per_s: Sequence[float] = (), root: Path = ROOT) -> MachineKind:
    """Return the kind of machine; an unknown one is shared.

    Args:
        probes_flop_per_s: what the clock probe gave in earlier and later measurements.
        root: where Linux's files are.
    """
    virtual = _is_virtual(root)
    if virtual is False:
        return "bare metal"
    if virtual is None or (_stolen_share(root) or 0.0) > 0.005 or len(probes_flop_per_s) < FEWEST_PROBES:
        return "shared"
    # Clocks of quiet cores change by less.
    steady = min(probes_flop_per_s) >= 0.93 * quantile(probes_flop_per_s, 0.9)
    return "virtual" if steady else "shared"


def _is_virtual(root: Path) -> bool | None:
    """Return whether this is a virtual machine; None where that is unknown, as on other systems than Linux."""
    flags = _cpu_flags(root)
    if "sse2" in flags:  # an x86 CPU, which has the flag
        return "hypervisor" in flags
    names = [read_line(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    product = " ".join(name for name in names if name).casefold()
    virtual_products = ("kvm", "qemu", "virtual", "vmware", "xen", "hvm domu", "bochs", "google compute", "ec2")
    return any(word in product for word in virtual_products) if product else None


def _stolen_share(root: Path) -> float | None:
    """Return the share of time since the start that the host gave to others; None where it is not accounted."""
    name, *fields = (read_line(root / "proc/stat") or "").partition("\n")[0].split() or [""]
    if name != "cpu" or len(fields) < 8 or not all(map(str.isdigit, fields[:8])):
        return None
    ticks = [int(field) for field in fields[:8]]
    busy = sum(ticks) - ticks[3] - ticks[4]  # without idle time and time waiting for disks
    return ticks[7] / busy if busy else None
