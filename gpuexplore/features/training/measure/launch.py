"""Several processes by torch's launcher, from inside the worker: started, followed, and ended whatever happens.

The launcher, `torch.distributed.run`, gives each process its rank and meets on a free port of 127.0.0.1. What rank 0
reports comes line by line through a file. Processes hear of a cancellation by another file, and are killed when they
do not obey, or are silent for too long.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psutil

from gpuexplore.core.errors import Cancelled, GpuExploreError
from gpuexplore.core.model import Device
from gpuexplore.core.serialization import encode
from gpuexplore.features.training.measure.interleaved import MOST_SECONDS

POLL_S = 0.05
MOST_SILENT_S = 90.0  # the start of every process loads torch
MOST_IN_ALL_S = MOST_SECONDS + 2 * MOST_SILENT_S
GRACE_S = 2.0  # after a cancellation, less than the worker has itself
WORDS_KEPT = 400  # characters of what a launcher that failed has printed
JOB, REPORTS, STOP, OUTPUT = "job.json", "reports", "stop", "output"


def train_in_processes(
    arguments: Mapping[str, str],
    device: Device,
    count: int,
    *,
    report: Callable[[Mapping[str, Any]], None],
    cancelled: Callable[[], bool],
) -> None:
    """Train in `count` processes and pass on what they report; nothing that was started is left.

    Raises:
        Cancelled: the user asked to stop.
        GpuExploreError: a process failed, or they were silent for too long.
    """
    with tempfile.TemporaryDirectory(prefix="gpuexplore-train-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        (directory / JOB).write_text(json.dumps({"arguments": dict(arguments), "device": encode(device)}))
        (directory / REPORTS).touch()
        with (directory / OUTPUT).open("wb") as output:
            process = subprocess.Popen(
                _command(count, directory),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(device),
            )
        try:
            _follow(process, directory, report, cancelled)
        finally:
            _end(process)


def _command(count: int, directory: Path) -> list[str]:
    launcher = [sys.executable, "-P", "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={count}"]
    # port 0: the launcher takes a free one and tells the others
    meeting = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1", "--max-restarts=0"]
    return [*launcher, *meeting, "-m", "gpuexplore.features.training.measure.rank", str(directory)]


def _environment(device: Device) -> dict[str, str]:
    """Return the variables of the processes: one thread each, all GPUs for several, and the loopback interface."""
    ours = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    own = {name: text for name, text in os.environ.items() if device.kind == "cpu" or name != "CUDA_VISIBLE_DEVICES"}
    return {**own, **ours}


def _follow(
    process: "subprocess.Popen[bytes]",
    directory: Path,
    report: Callable[[Mapping[str, Any]], None],
    cancelled: Callable[[], bool],
) -> None:
    began = heard = monotonic()
    offset, finished = 0, False
    while True:
        code = process.poll()  # first, so that all that was written before is read
        offset, lines = _new_lines(directory / REPORTS, offset)
        for line in lines:
            payload = json.loads(line)
            finished = finished or payload["final"]
            report(payload)
            heard = monotonic()
        if finished:
            with suppress(subprocess.TimeoutExpired):  # one that ends by itself tells what CPU time it used
                process.wait(GRACE_S)
        if code is not None or finished:
            break
        if cancelled():
            _stop(process, directory)
            raise Cancelled("cancelled while several processes learned")
        if monotonic() - heard > MOST_SILENT_S or monotonic() - began > MOST_IN_ALL_S:
            raise GpuExploreError(f"the processes reported nothing for too long{_last_words(directory)}")
        sleep(POLL_S)
    if not finished:
        raise GpuExploreError(f"the processes ended with {code}{_last_words(directory)}")


def _new_lines(path: Path, offset: int) -> tuple[int, list[str]]:
    """Return the whole lines after `offset`, and where they end."""
    with path.open("rb") as file:
        file.seek(offset)
        whole, newline, _ = file.read().rpartition(b"\n")
    return offset + len(whole) + len(newline), whole.decode().splitlines()


def _last_words(directory: Path) -> str:
    """Return the error that a process printed, for the reason of the failure."""
    lines = (directory / OUTPUT).read_text(errors="replace").splitlines()
    errors = [line.partition("]:")[2] or line for line in lines if "Error" in line and "ChildFailed" not in line]
    return f": {errors[-1].strip()[:WORDS_KEPT]}" if errors else ""


def _stop(process: "subprocess.Popen[bytes]", directory: Path) -> None:
    """Ask the processes to end, and wait a moment for that."""
    (directory / STOP).touch()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the launcher with all it started; those are found before it dies, for then they have other parents."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        for child in started:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(started, timeout=GRACE_S)
    process.wait()
