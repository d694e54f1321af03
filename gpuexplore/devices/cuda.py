"""From a driver's facts to a `Device`: which peaks apply, and a sentence saying why."""

from dataclasses import replace

from gpuexplore.devices.accelerators import with_row
from gpuexplore.devices.formula import formula_bandwidth, formula_peaks, native_since
from gpuexplore.devices.gpu_facts import GpuFacts
from gpuexplore.devices.variants import choose
from gpuexplore.model import Device, Identity


def device_from(index: int, facts: GpuFacts) -> Device:
    """Return `cuda:<index>` with the peaks of its row, else of the formula, else none."""
    row, doubt = choose(facts)
    if row is None:
        return _by_formula(_plain(index, facts), facts, doubt or "no row describes it")
    return with_row(_plain(index, facts, doubt), row)


def _plain(index: int, facts: GpuFacts, told: str | None = None) -> Device:
    """Return the device with what the driver states, without peaks.

    Args:
        index: CUDA's.
        facts: of the driver.
        told: a note on how its row was told.
    """
    return Device(
        id=f"cuda:{index}",
        kind="cuda",
        name=facts.name,
        cores=facts.multiprocessors,
        memory_bytes=facts.memory_bytes,
        clock_hz=facts.clock_hz,
        compute_capability=facts.compute_capability,
        driver=facts.driver,
        uuid=facts.uuid,
        native=native_since(facts.compute_capability),
        identity=_identity(facts),
        notes=() if told is None else (f"{told}.",),
    )


def _identity(facts: GpuFacts) -> Identity | None:
    found = Identity(pci_id=facts.pci_id, power_limit_w=facts.power_limit_w)
    return None if found == Identity() else found


def _by_formula(device: Device, facts: GpuFacts, doubt: str) -> Device:
    peaks = formula_peaks(
        facts.name,
        compute_capability=facts.compute_capability,
        multiprocessors=facts.multiprocessors,
        clock_hz=facts.clock_hz,
    )
    if not peaks:
        note = f"Peaks are unknown: {doubt}, and the driver states too little for the formula."
        return replace(device, notes=(note,))
    note = f"Peaks are rate x multiprocessors x maximum clock: {doubt}; dtypes whose rate is uncertain have none."
    bandwidth = None if facts.sliced else formula_bandwidth(facts.memory_clock_hz, facts.bus_bits)
    return replace(device, peaks=peaks, bandwidth=bandwidth, notes=(note,))
