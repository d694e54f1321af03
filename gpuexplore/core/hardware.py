"""A processor: its identity and its peaks. Import these values from `gpuexplore.core.model`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Unit = Literal["vector", "dot", "matrix"]  # dot: products by dot-product instructions of a CPU's vector units
MachineKind = Literal["bare metal", "virtual", "shared"]
PeakKind = Literal["datasheet", "formula", "measured_ceiling", "own", "held_clock", "published"]


WIDENED = "is widened to fp32"  # ends the source of a peak whose dtype has no such units: fp32 computes


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak FLOP/s of one dtype on one kind of unit, with its source."""

    dtype: str
    unit: Unit
    flop_per_s: float
    kind: PeakKind
    source: str

    @property
    def rate_note(self) -> str:
        """Note on the rate: ``at the fp32 rate`` for a dtype that fp32 computes, else empty."""
        return "at the fp32 rate" if f"{self.dtype} {WIDENED}" in self.source else ""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The peak bytes/s of the device's memory, with its source."""

    bytes_per_s: float
    kind: PeakKind
    source: str


@dataclass(frozen=True, slots=True)
class CacheRoof:
    """One level of a CPU's caches: its bytes for all threads together, and how fast they move."""

    level: int
    size_bytes: int
    bandwidth: Bandwidth


@dataclass(frozen=True, slots=True)
class ThreadRoofs:
    """The peaks of one thread of a CPU while the other cores are idle.

    Attributes:
        peaks: compute peaks; a dtype and unit without a row is unknown.
        bandwidth: of memory, with streaming stores.
        ordinary_stores: the same with ordinary stores, which read each line before they write it.
        caches: levels whose bandwidth was measured, the fastest first.
    """

    peaks: tuple[Peak, ...] = ()
    bandwidth: Bandwidth | None = None
    ordinary_stores: Bandwidth | None = None
    caches: tuple[CacheRoof, ...] = ()

    def peak(self, dtype: str, unit: Unit) -> Peak | None:
        """Return the peak of `dtype` on `unit`; None when unknown, never that of another dtype or unit."""
        return _peak(self.peaks, dtype, unit)


AVX512 = frozenset({"avx512f", "avx512bw", "avx512vl"})
AVX512_VNNI = AVX512 | {"avx512_vnni"}
SAPPHIRE_RAPIDS = AVX512_VNNI | {"avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8"}
ARMV8_2 = frozenset({"asimdhp", "asimddp", "fphp"})
NEOVERSE_V1 = ARMV8_2 | {"bf16", "i8mm", "sve", "svebf16", "svei8mm"}
# The instruction sets, of those in FIRST_WITH, that CPUs of a microarchitecture can have: a hypervisor hides some, and
# may state the numbers of another CPU, but cannot add any. Some firmware enables AVX-512 on the first Alder Lakes.
# https://gcc.gnu.org/onlinedocs/gcc/x86-Options.html https://gcc.gnu.org/onlinedocs/gcc/AArch64-Options.html
CAN_HAVE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("Zen 2", "Zen 3", "Haswell", "Broadwell", "Cortex-A72"), frozenset()),
        "Zen 4": AVX512_VNNI | {"avx512_bf16"},
        "Zen 5": AVX512_VNNI | {"avx512_bf16", "avx_vnni"},
        "Skylake-SP": AVX512,
        **dict.fromkeys(("Cascade Lake", "Ice Lake", "Tiger Lake", "Rocket Lake"), AVX512_VNNI),
        "Cooper Lake": AVX512_VNNI | {"avx512_bf16"},
        **dict.fromkeys(("Raptor Lake", "Sierra Forest"), frozenset({"avx_vnni"})),
        "Alder Lake": AVX512_VNNI | {"avx512_bf16", "avx512_fp16", "avx_vnni"},
        **dict.fromkeys(("Sapphire Rapids", "Emerald Rapids"), SAPPHIRE_RAPIDS),
        "Granite Rapids": SAPPHIRE_RAPIDS | {"amx_fp16"},
        **dict.fromkeys(("Cortex-A76", "Neoverse N1"), ARMV8_2),
        "Neoverse V1": NEOVERSE_V1,
        **dict.fromkeys(("Neoverse N2", "Neoverse V2", "Neoverse N3", "Neoverse V3"), NEOVERSE_V1 | {"sve2"}),
    }
)
# The oldest CPUs with an instruction set, by vendor, the latest first.
FIRST_WITH: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "GenuineIntel": {
            "amx_fp16": "AMX FP16, Granite Rapids or newer",
            **dict.fromkeys(("amx_bf16", "amx_int8", "amx_tile"), "AMX, Sapphire Rapids or newer"),
            "avx512_fp16": "AVX-512 FP16, Sapphire Rapids or newer",
            "avx_vnni": "AVX-VNNI, Alder Lake or newer",
            "avx512_bf16": "AVX-512 BF16, Cooper Lake or newer",
            "avx512_vnni": "AVX-512 VNNI, Cascade Lake or newer",
            **dict.fromkeys(sorted(AVX512), "AVX-512, Skylake-SP or newer"),
        },
        "AuthenticAMD": {
            **dict.fromkeys(("amx_fp16", "amx_bf16", "amx_int8", "amx_tile"), "AMX, newer than Zen 5"),
            "avx512_fp16": "AVX-512 FP16, newer than Zen 5",
            "avx_vnni": "AVX-VNNI, Zen 5 or newer",
            "avx512_bf16": "AVX-512 BF16, Zen 4 or newer",
            **dict.fromkeys(sorted(AVX512_VNNI), "AVX-512, Zen 4 or newer"),
        },
        "0x41": {
            "sme": "SME, Armv9.2 or newer",
            "sve2": "SVE2, Neoverse N2 or newer",
            **dict.fromkeys(("sve", "svebf16", "svei8mm"), "SVE, Neoverse V1 or newer"),
            **dict.fromkeys(("bf16", "i8mm"), "BF16 or I8MM, Armv8.6 or newer"),
            **dict.fromkeys(sorted(ARMV8_2), "half precision or dot products, Armv8.2 or newer"),
        },
    }
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Facts that distinguish processors of one name; cores, UUID, compute capability and driver are in `Device`.

    Attributes:
        vendor: as a CPU states it, e.g. `AuthenticAMD`; of an Arm CPU the implementer, e.g. `0x41`.
        family: of a CPU; of an Arm CPU the architecture.
        model: of a CPU; of an Arm CPU the part.
        stepping: of a CPU; of an Arm CPU variant and revision, e.g. 0x31 for r3p1.
        instruction_sets: those of a CPU that decide how fast it computes, by Linux's names.
        cache_sizes_bytes: of the caches for data that one core of a CPU uses, the nearest first.
        microarchitecture: of a CPU, e.g. `Zen 4`; None where no table has it. One that cannot have the
            instruction sets is replaced by what has them, e.g. `with AMX, Sapphire Rapids or newer`.
        pci_id: vendor and device of a GPU, e.g. `10de:2335`.
        power_limit_w: what the driver allows a GPU.
    """

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    instruction_sets: tuple[str, ...] | None = None
    cache_sizes_bytes: tuple[int, ...] | None = None
    microarchitecture: str | None = None
    pci_id: str | None = None
    power_limit_w: float | None = None

    def __post_init__(self) -> None:
        possible = CAN_HAVE.get(self.microarchitecture or "")
        if possible is None:
            return
        found = set(self.instruction_sets or ()) - possible
        first = next((words for name, words in FIRST_WITH.get(self.vendor or "", {}).items() if name in found), None)
        if first is not None:
            object.__setattr__(self, "microarchitecture", f"with {first}")


@dataclass(frozen=True, slots=True)
class Device:
    """A processor of this machine as it was when it was looked at.

    Attributes:
        id: `cpu` or `cuda:0`.
        kind: the part of the id before the colon.
        cores: physical cores of a CPU, multiprocessors of a GPU.
        cache_bytes: last-level cache, flushed for `cold` measurements.
        clock_hz: boost clock the driver or the table states; None where nothing states it.
        native: dtypes with arithmetic units of their own; others are emulated.
        spec_key: row of accelerators.csv that was matched and trusted.
        peaks: compute peaks; a dtype and unit without a row is unknown.
        bandwidth: of memory; of a CPU with streaming stores, which go past the caches.
        caches: levels whose bandwidth was measured, the fastest first.
        notes: what a reader should know about these figures, a sentence each.
        identity: facts that distinguish it from others of its name; None is unknown.
        ordinary_stores: of a CPU, memory bandwidth with ordinary stores: each line is read before it is written
            (write-allocate), which is not counted. None where it was not measured.
        one_thread: of a CPU, what one thread reaches alone; None where it was not measured.
        machine_kind: of a CPU, whose cores it computes on: a machine's of its own, a virtual one's, or some that others
            use too, as far as that is known; None in results of earlier versions.
    """

    id: str
    kind: str
    name: str
    cores: int | None = None
    memory_bytes: int | None = None
    cache_bytes: int | None = None
    clock_hz: float | None = None
    compute_capability: str | None = None
    driver: str | None = None
    uuid: str | None = None
    native: tuple[str, ...] = ()
    spec_key: str | None = None
    peaks: tuple[Peak, ...] = ()
    bandwidth: Bandwidth | None = None
    caches: tuple[CacheRoof, ...] = ()
    notes: tuple[str, ...] = ()
    identity: Identity | None = None
    ordinary_stores: Bandwidth | None = None
    one_thread: ThreadRoofs | None = None
    machine_kind: MachineKind | None = None

    def __hash__(self) -> int:
        """Return a hash of its identifying fields: hashing all peaks took longer than a prediction."""
        return hash((self.id, self.name, self.spec_key, self.uuid))

    @property
    def title(self) -> str:
        """The name for a reader, with the microarchitecture where it is known: ``AMD EPYC (Zen 4)``."""
        microarchitecture = self.identity.microarchitecture if self.identity else None
        if microarchitecture is None or microarchitecture.casefold() in self.name.casefold():
            return self.name
        return f"{self.name} ({microarchitecture})"

    @property
    def short_title(self) -> str:
        """The title as people say it: ``Intel Xeon Gold 6248`` of Intel(R) ... CPU @ 2.50GHz."""
        extra = (
            r"\((?:R|TM|C)\)|[®™]|\(with [^)]*\)|@ ?[\d.]+ ?[GM]Hz|\b(?:\d+-Core|(?-i:Processor)|CPU|with Radeon.*)\b"
        )
        return " ".join(re.sub(extra, " ", self.title, flags=re.IGNORECASE).split()) or self.title

    @property
    def is_hypothetical(self) -> bool:
        """True for a row of the table of accelerators, on which nothing can be measured."""
        return self.kind == "table"

    @property
    def is_simulated(self) -> bool:
        """True for a simulated device, which a setting adds: nothing is measured on it."""
        return self.kind == "simulated"

    def peak(self, dtype: str, unit: Unit) -> Peak | None:
        """Return the peak of `dtype` on `unit`; None when unknown, never that of another dtype or unit."""
        return _peak(self.peaks, dtype, unit)


def _peak(peaks: Iterable[Peak], dtype: str, unit: Unit) -> Peak | None:
    """Return the peak of a unit; of dot products, where none is known of them alone, that of all products."""
    found = {peak.unit: peak for peak in peaks if peak.dtype == dtype}
    return found.get(unit) or (found.get("matrix") if unit == "dot" else None)
