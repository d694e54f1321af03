"""Processes that take seconds of the CPU for a page: low in priority, and stopped while somebody would measure on it.

Who works so holds the lock of the CPU and gives it back as soon as a measurement asks; the process stands still until
the measurement is over.
"""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil
from filelock import Timeout

from gpuexplore.errors import Unsupported
from gpuexplore.jobs.locks import HostLock, cpu_is_asked_for

SLICE_S = 0.05  # so often it is looked whether somebody asks
GIVE_UP_S = 600.0  # it stands still for so long at most
CPU_BUSY = "the CPU is being measured: try again in a minute"


def run_beside(
    command: Sequence[str], *, input: bytes, timeout: float, cpu: HostLock
) -> "subprocess.CompletedProcess[bytes]":
    """Run a process to its end, and let measurements have the CPU meanwhile.

    Args:
        command: of the process.
        input: what it reads.
        timeout: seconds it may work; those that it stands still do not count.
        cpu: the lock of the CPU, which the caller holds before and after.

    Raises:
        subprocess.TimeoutExpired: it worked longer; has what it printed by then.
        Unsupported: measurements did not let it go on for GIVE_UP_S.
    """
    worked_s = 0.0
    with tempfile.TemporaryFile() as given:  # Python 3.11 sends nothing on after a `communicate` that timed out
        given.write(input)
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            while True:
                began_s = time.monotonic()
                try:
                    printed, words = process.communicate(timeout=min(SLICE_S, max(timeout - worked_s, 0.0)))
                except subprocess.TimeoutExpired as error:
                    worked_s += time.monotonic() - began_s
                    if worked_s >= timeout:
                        raise subprocess.TimeoutExpired(command, timeout, output=error.output) from None
                    if cpu_is_asked_for():
                        _stand_still(process, cpu)
                else:
                    return subprocess.CompletedProcess(command, process.returncode, printed, words)
        finally:
            _end(process)


def _stand_still(process: "subprocess.Popen[bytes]", cpu: HostLock) -> None:
    """Stop a process until nobody asks for the CPU any more, and nobody has it."""
    family = _family(process)
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.suspend()
    cpu.release()
    end_s = time.monotonic() + GIVE_UP_S
    try:
        while cpu_is_asked_for() and time.monotonic() < end_s:
            time.sleep(SLICE_S)
    finally:
        _have_again(cpu, end_s)
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.resume()


def _have_again(cpu: HostLock, end_s: float) -> None:
    try:
        cpu.acquire(timeout=max(end_s - time.monotonic(), 0.0))
    except Timeout as error:
        raise Unsupported(CPU_BUSY) from error


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        for each in _family(process):
            with suppress(psutil.NoSuchProcess):
                each.kill()


def _family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    try:
        first = psutil.Process(process.pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
