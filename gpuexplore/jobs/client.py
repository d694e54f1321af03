"""Starts this host's supervisor when there is none: light enough for the web process.

The supervisor is a program of its own and not a child that multiprocessing spawns: Streamlit
replaces `__main__`, which a spawned child would run again.
"""

import logging
import os
import subprocess
import sys
import time

from filelock import BaseFileLock, Timeout

from gpuexplore.devices.directories import data_directory
from gpuexplore.jobs.locks import starter_lock, supervisor_lock
from gpuexplore.store import open_store
from gpuexplore.store.database import URL_VARIABLE

LOG = logging.getLogger(__name__)
MAX_HEARTBEAT_AGE_S = 3.0
START_S = 10.0
POLL_S = 0.05
COMMAND = (sys.executable, "-m", "gpuexplore.jobs.supervisor")


def ensure_supervisor(database_url: str | None = None) -> subprocess.Popen[bytes] | None:
    """Start a supervisor unless one is alive or being started; return the process that was started.

    It outlives this process and logs to `logs/supervisor.log` in the data directory.
    """
    starting = starter_lock()
    try:
        starting.acquire(blocking=False)
    except Timeout:
        return None
    try:
        if is_supervised(database_url):
            return None
        process = _start(database_url)
        _wait_until_locked(process)
        return process
    finally:
        starting.release()


def is_supervised(database_url: str | None = None) -> bool:
    """Return whether a supervisor reported itself in the last seconds, or holds this host's lock."""
    with open_store(database_url) as store:
        alive = store.supervisor()
    return (alive is not None and alive.age_s < MAX_HEARTBEAT_AGE_S) or _is_held(supervisor_lock())


def _start(database_url: str | None) -> subprocess.Popen[bytes]:
    environment = os.environ | ({URL_VARIABLE: database_url} if database_url else {})
    path = data_directory() / "logs" / "supervisor.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as log:
        process = subprocess.Popen(
            COMMAND, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    LOG.info("Started the supervisor as process %d", process.pid)
    return process


def _wait_until_locked(process: subprocess.Popen[bytes]) -> None:
    """Keep others from starting a second one until the first holds its lock."""
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s and not _is_held(supervisor_lock()):
        time.sleep(POLL_S)


def _is_held(lock: BaseFileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False
