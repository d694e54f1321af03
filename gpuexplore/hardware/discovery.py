"""Devices of this machine: the CPU, the GPUs of CUDA (by NVML, else `nvidia-smi`), then those that only torch finds."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpuexplore.core import Device, Identity, check_known, require
from gpuexplore.hardware.accelerators import with_row
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.hardware.cpu_ceiling.cache import load_ceiling, with_ceiling
from gpuexplore.hardware.formula import formula_bandwidth, formula_peaks, native_since
from gpuexplore.hardware.nvml import GpuFacts, load_nvml, pci_id_of, read_gpus, visible_uuids
from gpuexplore.hardware.torch_devices import torch_devices
from gpuexplore.hardware.variants import choose

USUAL_DTYPES = ("fp32", "bf16", "fp16")
VARIABLE = "GPUEXPLORE_SIMULATED_DEVICES"
MOST = 64

FIELDS = (
    *("uuid", "name", "memory.total", "compute_cap", "clocks.max.sm", "clocks.max.memory", "driver_version"),
    *("pci.device_id", "enforced.power.limit"),
)


def _query_gpus() -> str:
    """Return one CSV line per GPU with `FIELDS`; empty without the command or without a driver."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    arguments = [command, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=10.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _parse_gpus(answer: str, visible: str | None) -> tuple[GpuFacts, ...]:
    """Return the GPUs of the command's answer that CUDA sees, in CUDA's order."""
    lines = [tuple(part.strip() for part in line.split(",")) for line in answer.splitlines()]
    found = {line[0]: _facts(line) for line in lines if len(line) == len(FIELDS)}
    return tuple(found[uuid] for uuid in visible_uuids(tuple(found), visible) if uuid in found)


def _facts(line: tuple[str, ...]) -> GpuFacts:
    uuid, name, memory_mib, capability, clock_mhz, memory_clock_mhz, driver, pci_device, watts = line
    return GpuFacts(
        name=name,
        uuid=uuid,
        memory_bytes=_whole(memory_mib, 2**20),
        compute_capability=capability if capability.replace(".", "", 1).isdigit() else None,
        clock_hz=_whole(clock_mhz, 1_000_000),
        memory_clock_hz=_whole(memory_clock_mhz, 1_000_000),
        driver=driver,
        pci_id=pci_id_of(int(pci_device, 16)) if pci_device.startswith("0x") else None,
        power_limit_w=float(watts) if watts.replace(".", "", 1).isdigit() else None,
    )


def _whole(text: str, unit: int) -> int | None:
    """Return the number in base units; None for "[N/A]"."""
    return int(text) * unit if text.isdigit() else None


def discover() -> tuple[Device, ...]:
    """Return this machine's CPU, CUDA devices, other devices of torch and simulated ones.

    This process loads no CUDA library and opens no context.
    """
    cpu = cpu_device()
    if ceiling := load_ceiling(cpu, cpu.cores or 1):
        cpu = with_ceiling(cpu, ceiling)
    else:
        unknown = "Peaks are unknown until they are measured: no table lists a CPU's clock under load."
        cpu = _with_notes(cpu, [unknown])
    real = _discover_with(nvml=load_nvml(), query_smi=_query_gpus, environment=os.environ, cpu=cpu)
    return (*real, *torch_devices(), *_simulated_devices())


def _discover_with(
    *, nvml: Any | None, query_smi: Callable[[], str], environment: Mapping[str, str], cpu: Device
) -> tuple[Device, ...]:
    """Return the devices that these sources describe.

    Args:
        nvml: the initialised pynvml module, or None; then nvidia-smi is asked.
        query_smi: returns the answer of nvidia-smi, empty without one.
        environment: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.
        cpu: the first device.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    gpus = read_gpus(nvml, visible) if nvml is not None else _parse_gpus(query_smi(), visible)
    note = _order_note(gpus, environment)
    return (cpu, *(_with_notes(_device_from(index, facts), note) for index, facts in enumerate(gpus)))


def _order_note(gpus: tuple[GpuFacts, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning where CUDA may count otherwise: it puts the fastest device first by default."""
    by_uuid = not environment.get("CUDA_VISIBLE_DEVICES", "0").replace(",", "").strip().isdigit()
    if len({gpu.name for gpu in gpus}) < 2 or by_uuid or environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return ()
    return ("CUDA may number different GPUs in another order: set CUDA_DEVICE_ORDER=PCI_BUS_ID.",)


def _with_notes(device: Device, notes: Iterable[str]) -> Device:
    return replace(device, notes=(*device.notes, *notes))


def device_named(device_id: str, devices: Iterable[Device]) -> Device:
    """Return the device with this id.

    Raises:
        InvalidInput: no such device; names those there are.
    """
    by_id = {device.id: device for device in devices}
    check_known("device", device_id, by_id)
    return by_id[device_id]


# Simulated devices: for trying a queue or a cluster on a machine without GPUs; nothing is measured on them.
#
# Only a setting creates them. Id, name and a flag on each result mark them as simulated, so that no number is taken
# for a measurement.


def _simulated_devices(environment: Mapping[str, str] = os.environ) -> tuple[Device, ...]:
    """Return as many simulated devices as the setting asks for, normally none.

    Raises:
        InvalidInput: the setting is no number from 0 to 64.
    """
    asked = environment.get(VARIABLE) or "0"
    require(asked.isdecimal() and int(asked) <= MOST, VARIABLE, asked, f"whole numbers from 0 to {MOST}")
    return tuple(
        Device(f"simulated:{index}", "simulated", f"Simulated device {index}: nothing is measured")
        for index in range(int(asked))
    )


# From a driver's facts to a `Device`: which peaks apply, and a sentence saying why.


def _device_from(index: int, facts: GpuFacts) -> Device:
    """Return `cuda:<index>` with the peaks of its row, else of the formula, else none."""
    row, doubt = choose(facts)
    if row is None:
        return _by_formula(_plain(index, facts), facts, doubt or "no row describes it")
    return with_row(_plain(index, facts, doubt), row)


def _plain(index: int, facts: GpuFacts, doubt: str | None = None) -> Device:
    """Return the device with what the driver states, without peaks.

    Args:
        index: CUDA's.
        facts: of the driver.
        doubt: a note on how its row was found.
    """
    identity = Identity(pci_id=facts.pci_id, power_limit_w=facts.power_limit_w)
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
        identity=None if identity == Identity() else identity,
        notes=() if doubt is None else (f"{doubt}.",),
    )


def _by_formula(device: Device, facts: GpuFacts, doubt: str) -> Device:
    peaks = formula_peaks(
        facts.name,
        compute_capability=facts.compute_capability,
        multiprocessors=facts.multiprocessors,
        clock_hz=facts.clock_hz,
    )
    if not peaks:
        note = f"Peaks are unknown: {doubt}, and the driver reports too little for the formula."
        return replace(device, notes=(note,))
    note = f"Peaks are rate x multiprocessors x maximum clock: {doubt}; dtypes whose rate is uncertain have none."
    bandwidth = None if facts.sliced else formula_bandwidth(facts.memory_clock_hz, facts.bus_bits)
    return replace(device, peaks=peaks, bandwidth=bandwidth, notes=(note,))


# The default number formats.


def first_dtypes(devices: Iterable[Device], chosen_ids: str = "") -> str:
    """Return the default dtypes: what `devices` compute natively, and bf16, even if emulated.

    Args:
        devices: of this machine.
        chosen_ids: of them, separated by commas; empty: all.
    """
    ids = chosen_ids.split(",") if chosen_ids else []
    native = [set(device.native) for device in devices if device.id in ids or not ids]
    if all("fp16" in formats for formats in native):
        return ",".join(USUAL_DTYPES)
    return "fp64,fp32,bf16"  # emulated bf16 costs conversions; emulated fp16 in a loop takes seconds per call
