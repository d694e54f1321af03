"""Start and end of the web server: the watch over its supervisor, and what readies the process."""

import asyncio
import gc
import logging
import os
import resource
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import streamlit as st

from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.core.served import PACKAGE
from gpuexplore.jobs.client import watch
from gpuexplore.jobs.quiet import serving
from gpuexplore.jobs.server_settings import check_settings
from gpuexplore.registry import features
from gpuexplore.ui.server.connections import CONNECTIONS
from gpuexplore.ui.session import SUPERVISOR_DUE, live_supervisor
from gpuexplore.ui.undocumented import remember_theme

NICE = 5  # a lower priority would leave visitors nothing where other programs keep every core busy
SWITCH_S = 0.0005  # for so long a thread keeps the others waiting; the loop that sends runs often and briefly
POLL_S = 0.5
VISITOR_WAIT_S = 10.0  # that the supervisor waits for a first visitor
PAGES_NEED = ("gpuexplore.ui.run.view", "gpuexplore.ui.roofline", "gpuexplore.ui.what_if.view")
MAX_OPEN_FILES = 65536
MIN_OPEN_FILES = 2048  # a hundred browsers that load a page need this many
GC_THRESHOLD = 10_000  # new objects; a redraw makes thousands, and Python would look for garbage at every 700
MAX_TRACEBACKS = 20  # records of one kind in a minute with its traceback,
MAX_LOG_LINES = 200  # and as a line
NEVER = -1  # below the level of every handler


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Keep a supervisor alive while the server runs, and end the one that was started with it."""
    try:
        check_settings()
    except InvalidInput as error:
        sys.stderr.write(f"gpuexplore: {error}\n")
        sys.stderr.flush()
        os._exit(2)  # as commands do for such values; of an exception, servers would show two tracebacks
    _raise_file_limit()
    make_record = logging.getLogRecordFactory()
    logging.setLogRecordFactory(_bounded_records(make_record))
    CONNECTIONS.bound(asyncio.get_running_loop())
    # What it starts finds the package too: hosts of apps install none, and may start the server from any folder
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    stop = threading.Event()
    threads = [
        threading.Thread(target=_watch_when_due, args=(stop,), name="supervisor-watch"),
        threading.Thread(target=_settle, name="settle"),
    ]
    for thread in threads:
        thread.start()
    stepping_back = asyncio.create_task(_step_back_when_warm())
    sys.setswitchinterval(SWITCH_S)
    remember_theme()
    try:
        with serving():
            yield
    finally:
        logging.setLogRecordFactory(make_record)
        stepping_back.cancel()
        stop.set()
        SUPERVISOR_DUE.set()
        for thread in threads:
            await asyncio.to_thread(thread.join)


def _watch_when_due(stop: threading.Event) -> None:
    """Keep a supervisor alive, once the first page is drawn: at its start a worker takes every core for seconds."""
    SUPERVISOR_DUE.wait(VISITOR_WAIT_S)
    if not stop.is_set():
        watch(stop)


def _bounded_records(
    make: Callable[..., logging.LogRecord], clock: Callable[[], float] = time.monotonic
) -> Callable[..., logging.LogRecord]:
    """Return a factory of log records that mutes what repeats: it is written a few times a minute, and then counted."""
    since_s = clock()
    counts: dict[tuple[str, int, str], int] = {}
    before: dict[tuple[str, int, str], int] = {}  # those that were left out in the minute before

    def bounded(*arguments: Any, **options: Any) -> logging.LogRecord:
        nonlocal since_s, counts, before
        record = make(*arguments, **options)
        if clock() - since_s > 60.0:
            before = {kind: count - MAX_LOG_LINES for kind, count in counts.items() if count > MAX_LOG_LINES}
            counts = {}
            since_s = clock()
        kind = (record.pathname, record.lineno, str(record.msg).partition("\n")[0][:60])
        count = counts[kind] = counts.get(kind, 0) + 1
        if left_out := before.pop(kind, 0):
            record.msg = f"{record.msg} ({left_out} more of them were left out)"
        if count > MAX_TRACEBACKS:
            record.exc_info = record.stack_info = None
        if count > MAX_LOG_LINES:
            record.levelno = NEVER
        return record

    return bounded


def _raise_file_limit() -> None:
    """Take as many open files as this process may; warn where a crowd needs more: a browser opens six connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < MIN_OPEN_FILES:
        sys.stderr.write(
            f"gpuexplore: this process may open {most} files, and a hundred browsers at once need {MIN_OPEN_FILES}: "
            "raise the hard limit, by `ulimit -Hn` or LimitNOFILE= of its unit\n"
        )


def _settle() -> None:
    """Import what pages need before the first request, and leave all that out of every search for garbage.

    Half a million objects that stay take a tenth of a second to search, in which no request is served: there is no
    search before the first page is drawn.
    """
    gc.disable()
    try:
        for name in (*PAGES_NEED, *(feature.preload for feature in features() if feature.preload)):
            import_module(name)
        SUPERVISOR_DUE.wait(VISITOR_WAIT_S)
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


async def _step_back_when_warm() -> None:
    """Step back once workers have loaded their libraries: before, the first visitors wait, and nothing is measured."""
    for _ in range(240):
        if not await asyncio.to_thread(_warms):
            break
        await asyncio.sleep(POLL_S)
    _lower_own_priority()


def _warms() -> bool:
    """Return whether workers still load their libraries, or are about to."""
    try:
        supervisor = live_supervisor()
    except GpuExploreError:  # the database cannot be used yet
        return True
    return supervisor is None or supervisor.state == "warming"


def _lower_own_priority() -> None:
    """Let measuring go first where both want a core, uninterrupted: a page may wait, a measurement may not."""
    if hasattr(os, "SCHED_BATCH"):  # Linux: who wakes up does not interrupt who computes
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if hasattr(os, "nice"):
        os.nice(NICE)
