"""The driver's own command as a second source, for a bare machine that has a GPU but no pynvml."""

import shutil
import subprocess

from gpuexplore.devices.cuda_visible_devices import visible_uuids
from gpuexplore.devices.gpu_facts import GpuFacts, pci_id_of

FIELDS = (
    *("uuid", "name", "memory.total", "compute_cap", "clocks.max.sm", "clocks.max.memory", "driver_version"),
    *("pci.device_id", "enforced.power.limit"),
)
TIMEOUT_S = 10.0


def query_gpus() -> str:
    """Return one CSV line per GPU with `FIELDS`; empty without the command or without a driver."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    arguments = [command, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def parse_gpus(answer: str, visible: str | None) -> tuple[GpuFacts, ...]:
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
        power_limit_w=_watts(watts),
    )


def _watts(text: str) -> float | None:
    return float(text) if text.replace(".", "", 1).isdigit() else None


def _whole(text: str, unit: int) -> int | None:
    """Return the number in base units; None for "[N/A]"."""
    return int(text) * unit if text.isdigit() else None
