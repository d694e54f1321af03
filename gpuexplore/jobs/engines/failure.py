"""Why a worker had to be given up."""

import signal
from dataclasses import dataclass
from pathlib import Path

from gpuexplore.errors import CANCELLED
from gpuexplore.model import Case, Status

VMSTAT = Path("/proc/vmstat")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended before every case had its result.

    Attributes:
        case: the one that is to blame, where no other can be.
    """

    status: Status
    reason: str
    case: Case | None = None


CANCELLATION = Failure(Status.CANCELLED, CANCELLED)


def failure_of_exit(exit_code: int, oom_kills_before: int | None) -> Failure:
    """Return what is known of a worker that ended in the middle of its task.

    Args:
        exit_code: of the process, a signal as a negative number.
        oom_kills_before: how many processes Linux had ended for want of memory when the task began.
    """
    if exit_code >= 0:
        return Failure(Status.CRASHED, f"the worker ended with exit code {exit_code}")
    name = signal.Signals(-exit_code).name
    if name != "SIGKILL":
        return Failure(Status.CRASHED, f"the worker was ended by {name}")
    now = oom_kills()
    if now is None or oom_kills_before is None:
        return Failure(Status.CRASHED, "the worker was ended by SIGKILL: out of memory, or killed by hand")
    if now > oom_kills_before:
        return Failure(Status.OUT_OF_MEMORY, "Linux ended the worker: its memory was exhausted")
    return Failure(Status.CRASHED, "the worker was ended by SIGKILL, and not for want of memory")


def oom_kills() -> int | None:
    """Return how many processes of this host Linux has ended for want of memory; None where it does not say."""
    try:
        lines = VMSTAT.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
