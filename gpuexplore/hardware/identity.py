"""The identity of devices: decides whether a result of one device applies to another."""

import hashlib
from collections.abc import Mapping

from gpuexplore.core import Device, format_bytes, format_flop_per_s

UnitKey = tuple[str, str | None, float | None]
OTHER_PROCESSOR = "another processor of this name"
MEMORY_TOLERANCE = 0.12  # ECC and firmware keep 6 to 7 % of a board's memory from the driver
FACTS: Mapping[str, str] = {  # fields of an identity: if two known values differ, the devices differ
    "vendor": "vendor",
    "family": "family",
    "model": "model",
    "stepping": "stepping",
    "instruction_sets": "instruction sets",
    "cache_sizes_bytes": "caches",
    "pci_id": "PCI id",
}


def same_device(device: Device | None, other: Device) -> bool:
    """Return whether a result of `device` applies to `other`: the same row of the table, or the same processor."""
    return why_other_device(device, other) is None


def why_other_device(device: Device | None, other: Device) -> str | None:
    """Return why a result of `device` does not apply to `other`; None where it does.

    Processors of one name differ: virtual machines call a Zen 4 and a Zen 5 `AMD EPYC`. What a processor says of itself
    decides; where one of the two is of a version that kept no identity, caches, formats and measured ceilings do.
    """
    if device is None:
        return "the result does not name its device"
    if device == other or (device.spec_key is not None and device.spec_key == other.spec_key):
        return None
    if (device.kind, device.name) != (other.kind, other.name):
        return f"it was measured on {device.title}"
    found = _difference(device, other)
    return found and f"{OTHER_PROCESSOR}: {found}"


def is_namesake(device: Device | None, other: Device) -> bool:
    """Return whether `device` is another processor than `other` under the same name."""
    return (why_other_device(device, other) or "").startswith(OTHER_PROCESSOR)


def same_unit(device: Device | None, other: Device) -> bool:
    """Return whether both are one piece of hardware in one state, as far as is known, so that they share ceilings.

    Two of a kind differ by some percent, and one under a lower power limit by more.
    """
    return (
        device is not None
        and same_device(device, other)
        and _agree(device.uuid, other.uuid)
        and _agree(device.compute_capability, other.compute_capability)
        and _agree(_power_limit_w(device), _power_limit_w(other))
    )


def device_key(device: Device) -> str:
    """Return a short text that is the same for devices with the same facts, for whatever is stored by device.

    Ceilings have no part in it: they change from one measurement to the next.
    """
    if device.spec_key is not None:
        return device.spec_key
    facts = [getattr(device.identity, name, None) for name in FACTS]
    facts += [device.name, device.cores, device.cache_bytes, device.compute_capability]
    return f"{device.kind}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"


def unit_key(device: Device) -> UnitKey:
    """Return an identifier of one piece of hardware in one state."""
    return (device_key(device), device.uuid, _power_limit_w(device))


def _power_limit_w(device: Device) -> float | None:
    return device.identity.power_limit_w if device.identity else None


def _agree(value: object, other: object) -> bool:
    """Return whether two facts are equal, as far as both are known."""
    return value is None or other is None or value == other


def _same_memory_size(size: int | None, other: int | None) -> bool:
    """Return whether two GPUs have the same memory, as far as both are known: ECC keeps some of it."""
    return size is None or other is None or abs(size - other) <= MEMORY_TOLERANCE * max(size, other)


def _difference(device: Device, other: Device) -> str | None:
    """Return how two processors of one name differ."""
    if not _agree(device.spec_key, other.spec_key):
        return f"it is {device.spec_key}, not {other.spec_key}, in the table of accelerators"
    if device.kind != "cpu" and not _same_memory_size(device.memory_bytes, other.memory_bytes):
        return f"it has {format_bytes(device.memory_bytes)} of memory, not {format_bytes(other.memory_bytes)}"
    if not _agree(device.cores, other.cores):
        return f"it has {device.cores} cores, not {other.cores}"
    if not _agree(device.compute_capability, other.compute_capability):
        return f"its compute capability is {device.compute_capability}, not {other.compute_capability}"
    if device.identity and other.identity:
        if not _agree(device.identity.microarchitecture, other.identity.microarchitecture):
            return f"it is {device.identity.microarchitecture}, not {other.identity.microarchitecture}"
        unlike = [
            word
            for name, word in FACTS.items()
            if not _agree(getattr(device.identity, name), getattr(other.identity, name))
        ]
        return f"other {', '.join(unlike)}" if unlike else None
    return _cpu_difference(device, other) if device.kind == "cpu" else None


def _cpu_difference(device: Device, other: Device) -> str | None:
    """Return how two CPUs differ, at least one of which has no known identity."""
    if device.cache_bytes != other.cache_bytes:
        return "its last-level cache is of another size"
    if set(device.native) != set(other.native):
        return f"its native formats are {', '.join(device.native)}, not {', '.join(other.native)}"
    ceilings = _ceilings(device)
    others = _ceilings(other)
    shared = [kind for kind in ceilings if kind in others]
    if not shared:
        return "the model is not stated, and no measured ceiling identifies it"
    ceiling_tolerance = 0.15  # of two measured ceilings of one processor; Zen 4 and Zen 5 differ by 120 %
    for dtype, unit in shared:
        rate = ceilings[dtype, unit]
        its_rate = others[dtype, unit]
        if abs(rate - its_rate) > ceiling_tolerance * max(rate, its_rate):
            return f"its {dtype} ceiling is {format_flop_per_s(rate)}, not {format_flop_per_s(its_rate)}"
    return None


def _ceilings(device: Device) -> dict[tuple[str, str], float]:
    """Return the measured ceilings of a device by dtype and unit, FLOP/s."""
    return {(peak.dtype, peak.unit): peak.flop_per_s for peak in device.peaks if peak.kind == "measured_ceiling"}
