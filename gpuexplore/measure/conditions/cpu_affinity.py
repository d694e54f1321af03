"""Keeps the threads of a library's pool off the core of the thread that calls it.

A scheduler may wake a pool's thread on its caller's core and leave it there for seconds, while another core
idles: the two then take turns of 3 ms, and torch's product of 128 x 128 takes 2.8 ms in place of 22 µs (seen on a
virtual machine with two cores and nobody else on it, in most of the rounds that follow a pause).

Right for pools whose caller works too, as OpenBLAS's and OpenMP's do; see docs/decisions/0005.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

TASKS = Path("/proc/self/task")


@contextmanager
def isolate_core(tasks: Path = TASKS) -> Iterator[None]:
    """Inside, this thread keeps the first core it may use to itself, the process's others share the rest.

    Threads started inside share the first core until it ends: whatever starts threads belongs outside. Does nothing on
    one core, and where the system does not let threads be placed.
    """
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cpus) < 2 or not tasks.exists():
        yield
        return
    own = threading.get_native_id()
    before = {thread_id: mask for thread_id in _thread_ids(tasks) if (mask := _mask(thread_id))}
    _set_masks({thread: {cpus[0]} if thread == own else mask - {cpus[0]} for thread, mask in before.items()})
    try:
        yield
    finally:
        inherited = {thread: before[own] for thread in _thread_ids(tasks) if thread not in before}
        _set_masks(before | {thread: mask for thread, mask in inherited.items() if _mask(thread) == {cpus[0]}})


def _thread_ids(tasks: Path) -> list[int]:
    return [int(path.name) for path in tasks.iterdir()]


def _mask(thread: int) -> set[int]:
    """Return the CPUs a thread may use; empty when it has ended."""
    try:
        return os.sched_getaffinity(thread)
    except OSError:
        return set()


def _set_masks(masks: Mapping[int, set[int]]) -> None:
    for thread, mask in masks.items():
        if mask:
            with suppress(OSError):  # it has ended, or has a core prescribed from outside
                os.sched_setaffinity(thread, mask)
