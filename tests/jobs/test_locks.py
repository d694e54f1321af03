"""One supervisor per host, one measurement per device: across threads and processes."""

import subprocess
import sys

import pytest
from filelock import Timeout

from gpuexplore.jobs.locks import device_lock, supervisor_lock

HOLD = """
import sys
from gpuexplore.jobs.locks import device_lock
with device_lock("cuda:0"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_holder_is_refused(home):
    with supervisor_lock(), pytest.raises(Timeout):
        supervisor_lock().acquire(blocking=False)


def test_devices_have_locks_of_their_own(home):
    with device_lock("cuda:0"), device_lock("cuda:1"), device_lock("cpu"):
        assert {path.name for path in (home / "locks").iterdir()} == {
            "device-cpu.lock",
            "device-cuda-0.lock",
            "device-cuda-1.lock",
        }


@pytest.mark.slow
def test_lock_ends_with_the_process_that_holds_it(home):
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Timeout):
            device_lock("cuda:0").acquire(blocking=False)
        holder.kill()
        holder.wait()

        with device_lock("cuda:0").acquire(timeout=5):
            pass
