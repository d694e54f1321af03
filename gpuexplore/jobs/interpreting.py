"""CUDA kernels run in the interpreter, in a process of its own with a limit of its time.

One at a time, as kernels are compiled, and none while the CPU is measured.
"""

import pickle
import subprocess
import sys

from gpuexplore.errors import GpuExploreError, TooSlow, Unsupported
from gpuexplore.jobs.compiling import in_turn
from gpuexplore.measure.check.interpreted import BlockRun, Request
from gpuexplore.units import format_seconds

LIMIT_S = 60.0
PROCESS = "gpuexplore.jobs.interpret_process"


def interpret(request: Request) -> BlockRun:
    """Return what running a kernel tells.

    Raises:
        InvalidInput, TooLarge, TooSlow, Unsupported: as of `gpuexplore.measure.check.interpreted`; also where the
            interpreter fails, takes too long, or others keep the CPU.
    """
    with in_turn():
        answer = _run(request)
    if isinstance(answer, GpuExploreError):
        raise answer
    return answer


def _run(request: Request) -> BlockRun | GpuExploreError:
    command = [sys.executable, "-m", PROCESS]
    try:
        done = subprocess.run(command, input=pickle.dumps(request), capture_output=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise TooSlow(f"the interpreter took longer than {format_seconds(LIMIT_S)}: choose a smaller shape") from error
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"the interpreter failed: {last}")
    answer: BlockRun | GpuExploreError = pickle.loads(done.stdout)
    return answer
