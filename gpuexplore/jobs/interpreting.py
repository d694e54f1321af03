"""CUDA kernels run in the interpreter, in a process of its own with a limit of its time, and kept on disk.

One at a time, as kernels are compiled, and it is suspended while the CPU is measured.
"""

import pickle
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from gpuexplore.core.errors import GpuExploreError, TooSlow, Unsupported
from gpuexplore.core.units import format_seconds
from gpuexplore.devices import cache_directory
from gpuexplore.jobs.compiling import exclusive_cpu, fingerprint, run_preemptible
from gpuexplore.jobs.locks import HostLock
from gpuexplore.measure.check.interpreted import BlockRun, KernelLaunch

LIMIT_S = 60.0
PROCESS = "gpuexplore.jobs.kernel_process"
SOURCES = ("operations", "kernels", "measure")
MOST_KEPT = 200  # at most a megabyte each


def interpret(request: KernelLaunch) -> BlockRun:
    """Return what running a kernel tells.

    Raises:
        InvalidInput, TooLarge, TooSlow, Unsupported: as of `gpuexplore.measure.check.interpreted`; also where the
            interpreter fails, takes too long, or others keep the CPU.
    """
    with exclusive_cpu() as cpu:
        found = kept_block(request)
        answer = found or _run(request, cpu)
    if isinstance(answer, GpuExploreError):
        raise answer
    if found is None:
        _keep(request, answer)
    return answer


def kept_block(request: KernelLaunch) -> BlockRun | None:
    """Return what running this kernel told before; None where it was not run."""
    try:
        found: BlockRun = pickle.loads(_path(request).read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):  # never run, or cut off while it was written
        return None
    return found


def _keep(request: KernelLaunch, run: BlockRun) -> None:
    path = _path(request)
    with suppress(OSError):  # a full disk: then it is run again
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(run))
        for old in sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-MOST_KEPT]:
            old.unlink(missing_ok=True)


def _path(request: KernelLaunch) -> Path:
    digest = sha256(repr((request, fingerprint(SOURCES))).encode()).hexdigest()[:24]
    return cache_directory() / "interpreted" / f"{digest}.pickle"


def _run(request: KernelLaunch, cpu: HostLock) -> BlockRun | GpuExploreError:
    command = [sys.executable, "-m", PROCESS, "interpret"]
    try:
        done = run_preemptible(command, input=pickle.dumps(request), timeout=LIMIT_S, cpu=cpu)
    except subprocess.TimeoutExpired as error:
        raise TooSlow(f"the interpreter took longer than {format_seconds(LIMIT_S)}: choose a smaller shape") from error
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"the interpreter failed: {last}")
    answer: BlockRun | GpuExploreError = pickle.loads(done.stdout)
    return answer
