"""The variant of a card among those with the same driver name: the RTX 3080 was sold with 10 and with 12 GB.

Multiprocessors, memory, PCI id and the memory's bandwidth decide, as far as the driver states them; where several rows
are left, the device is none of them for certain. Drivers call early and special boards by the board's code, like
A100-PG509-200, or "Graphics Device": these are recognised by multiprocessors, compute capability and memory alone.
"""

import re

from gpuexplore.core.units import format_bytes, format_bytes_per_s
from gpuexplore.hardware.accelerators import ACCELERATORS, Accelerator, rows_named
from gpuexplore.hardware.formula import formula_bandwidth
from gpuexplore.hardware.identity import MEMORY_TOLERANCE
from gpuexplore.hardware.nvml import GpuFacts

# What vendors print is up to 2.4 % below twice clock times width (H200); the RTX 4070 with slower memory lacks 4.8 %.
BANDWIDTH_TOLERANCE = 0.035
SHARED_MEMORY = "LPDDR"  # memory shared by CPU and GPU: drivers state another clock or width


# Words of a driver name that do not identify the chip.
_NOT_A_MODEL = re.compile(r"nvidia|amd|tesla|radeon|instinct|graphics|device|gpu|oam|pg\d{3}|p\d{4}|\d{3}")


def choose(facts: GpuFacts) -> tuple[Accelerator | None, str | None]:
    """Return the only row of this driver name that agrees with the driver's facts, or else why there is none.

    Of a board without a known name it is both: the row, and what identifies it.
    """
    rows = rows_named(facts.name)
    if facts.sliced and rows:
        return None, "the GPU is split into MIG instances"
    if not rows:
        return _of_board(facts) or (None, f"no row is called {facts.name!r}")
    contradictions = [(row, _contradiction(row, facts)) for row in rows]
    left = [row for row, contradicted in contradictions if contradicted is None]
    if len(left) == 1:
        return left[0], None
    if left:
        keys = ", ".join(row.key for row in left)
        return None, f"the name is ambiguous, and the driver does not state which of {keys} it is"
    return None, "; ".join(f"{row.key}: {why}" for row, why in contradictions)


def _of_board(facts: GpuFacts) -> tuple[Accelerator, str] | None:
    """Return the usual variant of the one model that a board without a known name can be; None without one."""
    if facts.sliced or facts.multiprocessors is None or facts.memory_bytes is None:
        return None
    rows = [row for row in ACCELERATORS if _may_be_board(row, facts)]
    if len({row.short_names for row in rows}) != 1:
        return None
    described = f"{facts.multiprocessors} multiprocessors and {format_bytes(facts.memory_bytes)}"
    capability = f"compute capability {facts.compute_capability}, " if facts.compute_capability else ""
    also = f"; it may be {' or '.join(row.name for row in rows[1:])}" if rows[1:] else ""
    return rows[0], f"{facts.name} is identified as {rows[0].name} by {capability}{described}{also}"


def _may_be_board(row: Accelerator, facts: GpuFacts) -> bool:
    if None in (row.multiprocessors, row.memory_bytes) or _contradiction(row, facts) is not None:
        return False
    if row.vendor == "NVIDIA" and facts.compute_capability not in (None, row.compute_capability):
        return False  # others' numbers differ from library to library
    words = set(re.findall(r"[a-z0-9]+", facts.name.casefold()))
    further = words - {word for name in row.short_names for word in name.casefold().split()}
    return all(_NOT_A_MODEL.fullmatch(word) for word in further)


def _contradiction(row: Accelerator, facts: GpuFacts) -> str | None:
    """Return why a row does not describe the device the driver sees, or None when it may."""
    counted = facts.multiprocessors
    if None not in (counted, row.multiprocessors) and counted != row.multiprocessors:
        return f"the driver counts {counted} multiprocessors, the table {row.multiprocessors}"
    seen = facts.memory_bytes
    size = row.memory_bytes
    if seen is not None and size is not None and abs(seen - size) > MEMORY_TOLERANCE * size:
        return f"the driver sees {seen / 2**30:.1f} GiB of memory, the table {size / 2**30:.0f} GiB"
    if facts.pci_id is not None and row.pci_ids and facts.pci_id not in row.pci_ids:
        return f"its PCI id is {facts.pci_id}, in the table {' or '.join(row.pci_ids)}"
    # Of memories of one size the bandwidth decides: the GTX 1650 was sold with GDDR5 and with GDDR6.
    stated = formula_bandwidth(facts.memory_clock_hz, facts.bus_bits)
    known = row.bandwidth_bytes_per_s
    if stated is None or known is None or (row.memory_type or "").startswith(SHARED_MEMORY):
        return None
    if abs(stated.bytes_per_s - known) <= BANDWIDTH_TOLERANCE * known:
        return None
    rate = format_bytes_per_s(stated.bytes_per_s)
    return f"memory clock and bus width give {rate}, the table {format_bytes_per_s(known)}"
