"""One supervisor per host, one measurement per device: across threads and processes."""

import subprocess
import sys
from dataclasses import replace

import pytest
from filelock import Timeout

from gpuexplore.jobs.locks import device_lock, supervisor_lock
from gpuexplore.model import Device

CPU, GPU, ANOTHER = (
    Device("cpu", "cpu", "a CPU"),
    Device("cuda:0", "cuda", "a GPU", uuid="GPU-1"),
    Device("cuda:1", "cuda", "a GPU", uuid="GPU-2"),
)
HOLD = """
import sys
from gpuexplore.jobs.locks import device_lock
from gpuexplore.model import Device
with device_lock(Device("cuda:0", "cuda", "a GPU", uuid="GPU-1")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_holder_is_refused(home):
    with supervisor_lock(), pytest.raises(Timeout):
        supervisor_lock().acquire(blocking=False)


def test_devices_have_locks_of_their_own(home):
    with device_lock(GPU), device_lock(ANOTHER), device_lock(CPU), device_lock(replace(GPU, uuid=None)):
        assert {path.name for path in (home / "locks").iterdir()} == {
            "device-cpu.lock",
            "device-GPU-1.lock",
            "device-GPU-2.lock",
            "device-cuda-0.lock",
        }


def test_one_gpu_is_locked_under_whatever_number_a_process_has_for_it(home):
    with device_lock(ANOTHER), pytest.raises(Timeout):
        device_lock(replace(ANOTHER, id="cuda:0")).acquire(blocking=False)


@pytest.mark.slow
def test_lock_ends_with_the_process_that_holds_it(home):
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Timeout):
            device_lock(GPU).acquire(blocking=False)
        holder.kill()
        holder.wait()

        with device_lock(GPU).acquire(timeout=5):
            pass
