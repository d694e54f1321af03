"""The functions that run in a worker: the process, one per device, in which measuring happens.

Only plain data go in and out: an object that does not unpickle would break the pool that waits for it.
Nothing here imports numpy before `initialise` has set the threads and the visible devices.
"""

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from gpuexplore.jobs.journal import CANCEL, JOURNAL, Begun, write_event
from gpuexplore.model import Case, Device, Result, Status
from gpuexplore.serialization import decode, encode

LOG = logging.getLogger(__name__)
PRIORITY = -10
PR_SET_PDEATHSIG = 1  # https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html


def initialise(environment: Mapping[str, str]) -> None:
    """Prepare a new worker: its environment, a process group of its own, priority, and an end with its parent."""
    os.environ.update(environment)
    if os.name == "posix":
        os.setpgrp()
        with suppress(PermissionError):  # the privilege of root: a measurement goes first
            os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def warm_up(runner: str, device: dict[str, Any]) -> dict[str, Any]:
    """Load the libraries the module `runner` uses on a device; return the device with its ceilings, encoded."""
    from gpuexplore.devices import ensure_ceiling

    ready = ensure_ceiling(decode(Device, device))
    resolve_name(runner).warm_up(ready)
    return encode(ready)  # type: ignore[no-any-return]


def measure_to_journal(runner: str, cases: list[Any], device: dict[str, Any], directory: str) -> None:
    """Measure a group with `runner`'s measure_group; the journal in `directory` tells how it goes.

    Every case ends with a result: what the runner leaves out, or loses in an exception, is an ERROR.
    """
    group = [decode(Case, one) for one in cases]
    place = Path(directory)
    with (place / JOURNAL).open("a", encoding="utf-8") as journal:
        write_event(journal, Begun(os.getpid()))
        left = dict.fromkeys(group)

        def report(event: Case | Result) -> None:
            if isinstance(event, Result):
                del left[event.case]
            write_event(journal, event)

        reason = _measure(runner, group, decode(Device, device), report=report, cancelled=(place / CANCEL).exists)
        for case in tuple(left):
            report(Result(case, Status.ERROR, reason))


def _measure(
    runner: str,
    group: list[Case],
    device: Device,
    *,
    report: Callable[[Case | Result], None],
    cancelled: Callable[[], bool],
) -> str:
    """Return the reason for the cases that got no result."""
    try:
        from gpuexplore.devices import ensure_ceiling

        ready = ensure_ceiling(device, group[0].options.threads)
        resolve_name(runner).measure_group(group, ready, report=report, cancelled=cancelled)
    except Exception as error:
        LOG.exception("Measuring %s failed", group[0].group)
        return f"{type(error).__name__}: {error}"
    return "the runner reported nothing on this case"
