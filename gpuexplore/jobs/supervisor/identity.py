"""Which supervisor this is: a name no other process has or will have."""

import os
import re
import secrets
import socket
from pathlib import Path

import psutil

import gpuexplore
from gpuexplore.jobs.locks import lock_directory
from gpuexplore.store import Instance

HOST_VARIABLE = "GPUEXPLORE_HOST"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def this_instance(*, side_by_side: bool = False) -> Instance:
    """Return this process as a supervisor: host, boot and a random part name it.

    Args:
        side_by_side: whether it measures on each of its devices by itself.
    """
    host, boot = host_name(), _boot()
    name = f"{host}/{boot[:8]}/{secrets.token_hex(4)}"
    return Instance(
        name,
        host,
        scope=f"{boot}/{_lock_scope()}",
        pid=os.getpid(),
        version=gpuexplore.__version__,
        side_by_side=side_by_side,
    )


def host_name() -> str:
    """Return this host's name as its devices carry it: the setting GPUEXPLORE_HOST, or the system's."""
    return re.sub(r"[^\w.-]", "-", os.environ.get(HOST_VARIABLE) or socket.gethostname())[:100]


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        pass
    try:
        return f"{psutil.boot_time():.0f}"
    except (OSError, RuntimeError):  # /proc cannot be read; locks end with their processes all the same
        return "unknown"


def _lock_scope() -> str:
    """Return what tells two containers of one kernel apart: they share no directory of locks."""
    found = lock_directory().stat()
    return f"{found.st_dev}:{found.st_ino}"
