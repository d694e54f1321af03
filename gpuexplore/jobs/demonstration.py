"""A mistake made in a process of its own, while nothing else is measured on its device."""

import json
import os
import subprocess
import sys

from filelock import Timeout

from gpuexplore.errors import GpuExploreError, Unsupported
from gpuexplore.jobs.locks import device_lock
from gpuexplore.measure import process_settings
from gpuexplore.mistakes.contract import Observation
from gpuexplore.model import Device
from gpuexplore.serialization import decode
from gpuexplore.units import format_seconds

PROCESS = "gpuexplore.mistakes"
WAIT_S = 60.0
LIMIT_S = 120.0


def run_here(name: str, device: Device) -> Observation:
    """Return what was observed when the mistake `name` was made on `device`.

    Raises:
        Unsupported: it cannot be made there.
        GpuExploreError: the device was in use all the time, or the process failed.
    """
    lock = device_lock(device)
    try:
        lock.acquire(timeout=WAIT_S)
    except Timeout as error:
        raise GpuExploreError(f"{device.id} is being measured: try again in a minute") from error
    try:
        return _observed(name, device)
    finally:
        lock.release()


def _observed(name: str, device: Device) -> Observation:
    command = [sys.executable, "-m", PROCESS, name, device.id]
    environment = {**os.environ, **process_settings()}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S, env=environment)
    except subprocess.TimeoutExpired as error:
        raise GpuExploreError(f"{name} took longer than {format_seconds(LIMIT_S)}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise GpuExploreError(f"{name} failed: {last}")
    answer = json.loads(done.stdout)
    if "reason" in answer:
        raise Unsupported(answer["reason"])
    return decode(Observation, answer["observation"])
