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
from typing import IO, Any

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


def measure_to_journal(runner: str, cases: list[Any], device: dict[str, Any], directory: str) -> str | None:
    """Measure a group with `runner`'s measure_group; the journal in `directory` tells how it goes.

    Every case ends with a result: what the runner leaves out, or loses in an exception, is an ERROR.

    Returns:
        The error that broke the CUDA context, and with it this process; the case that met it is then the last one
        the journal tells of, and has no result. None when all went well.
    """
    place = Path(directory)
    with (place / JOURNAL).open("a", encoding="utf-8") as journal:
        write_event(journal, Begun(os.getpid()))
        reporter = _Reporter(journal, [decode(Case, case) for case in cases], decode(Device, device))
        reason = _measure(runner, reporter, cancelled=(place / CANCEL).exists)
        for case in tuple(reporter.left):
            reporter.report(Result(case, Status.ERROR, reason))
        return reporter.context_error


class _Reporter:
    """Writes what a runner reports, until a case breaks the CUDA context: what follows would blame the wrong ones.

    Attributes:
        left: the cases without a result.
        context_error: what broke the context.
    """

    def __init__(self, journal: IO[str], group: list[Case], device: Device) -> None:
        self.device = device
        self.left = dict.fromkeys(group)
        self.context_error: str | None = None
        self._journal = journal

    def report(self, event: Case | Result) -> None:
        if self.context_error is not None:
            return
        if isinstance(event, Result):
            if self._breaks_context(event):
                self.context_error, event = event.reason, event.case
            else:
                del self.left[event.case]
        write_event(self._journal, event)

    def _breaks_context(self, result: Result) -> bool:
        from gpuexplore.measure.cuda_context import breaks_context

        return result.status is Status.ERROR and breaks_context(result.reason or "", self.device)


def _measure(runner: str, reporter: _Reporter, *, cancelled: Callable[[], bool]) -> str:
    """Return the reason for the cases that got no result."""
    group = list(reporter.left)
    try:
        from gpuexplore.devices import ensure_ceiling

        ready = ensure_ceiling(reporter.device, group[0].options.threads)
        resolve_name(runner).measure_group(group, ready, report=reporter.report, cancelled=cancelled)
    except Exception as error:
        LOG.exception("Measuring %s failed", group[0].group)
        return f"{type(error).__name__}: {error}"
    return "the runner reported nothing on this case"
