"""The state of a device at one moment, stored with every result: clocks, temperature, and other processes.

What a machine does not report is None; nothing here raises.
"""

import os
from pathlib import Path
from typing import Any

from gpuexplore.core.model import Device, Telemetry
from gpuexplore.hardware.cpu import ROOT, read_line
from gpuexplore.hardware.nvml import ask, handle_of, load_nvml


def read(device: Device) -> Telemetry:
    """Return the state of `device` now."""
    if device.kind == "cpu":
        return _read_cpu()
    nvml = load_nvml() if device.kind == "cuda" else None
    return Telemetry() if nvml is None or device.uuid is None else _read_gpu(nvml, device.uuid)


def _read_gpu(nvml: Any, uuid: str) -> Telemetry:
    """Return the state of the GPU with this UUID as the initialised `nvml` module reports it."""
    handle = handle_of(nvml, uuid)
    if handle is None:
        return Telemetry()
    mhz = ask(nvml, "nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM)
    milliwatts = ask(nvml, "nvmlDeviceGetPowerUsage", handle)
    return Telemetry(
        clock_hz=None if mhz is None else mhz * 1e6,
        temperature_c=ask(nvml, "nvmlDeviceGetTemperature", handle, 0),  # NVML_TEMPERATURE_GPU
        power_w=None if milliwatts is None else milliwatts / 1e3,
        throttle_reasons=_throttle_reasons(nvml, handle),
        foreign_processes=_foreign_processes(nvml, handle),
    )


def free_gpu_bytes(uuid: str) -> int | None:
    """Return the free memory of the GPU with this UUID, or None where NVML does not report it."""
    nvml = load_nvml()
    handle = None if nvml is None else handle_of(nvml, uuid)
    return None if handle is None else getattr(ask(nvml, "nvmlDeviceGetMemoryInfo", handle), "free", None)


def _throttle_reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    bits = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if bits is None:  # the name before driver 535
        bits = ask(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    # All bits but idling (0x1), which no busy GPU does:
    # https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
    words = {
        0x2: "application clocks are set",
        0x4: "software power cap",
        0x8: "hardware slowdown",
        0x10: "sync boost",
        0x20: "software thermal slowdown",
        0x40: "hardware thermal slowdown",
        0x80: "power brake",
        0x100: "display clock",
    }
    return tuple(word for bit, word in words.items() if (bits or 0) & bit)


def _foreign_processes(nvml: Any, handle: Any) -> int | None:
    """Return how many other processes compute on the GPU; None in a container, where its ids mean nothing."""
    running = ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    if running is None:
        return None
    pids = {process.pid for process in running} - {os.getpid(), os.getppid()}
    return len(pids) if all(Path(f"/proc/{pid}").exists() for pid in pids) else None


def _read_cpu(root: Path = ROOT) -> Telemetry:
    """Return the CPU's fastest current clock and highest temperature.

    The clock is cpufreq's: what /proc/cpuinfo states on a machine without it is the nominal one.
    """
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    khz = [int(line) for line in map(read_line, files) if line and line.isdigit()]
    return Telemetry(clock_hz=max(khz) * 1e3 if khz else None, temperature_c=_cpu_temperature())


def _cpu_temperature() -> float | None:
    try:
        import psutil
    except ImportError:
        return None
    if not hasattr(psutil, "sensors_temperatures"):  # Linux and FreeBSD only
        return None
    sensors = psutil.sensors_temperatures()
    return max(
        (
            sensor.current
            for name in ("coretemp", "k10temp", "zenpower", "cpu_thermal")
            for sensor in sensors.get(name, ())
        ),
        default=None,
    )


def governor(root: Path = ROOT) -> str | None:
    """Return the policy that sets the CPU's clock, e.g. `performance`; None without cpufreq."""
    return read_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
