"""One device's worker: a warm process that is killed, with everything it started, and replaced when it fails."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil
from pebble import ProcessFuture, ProcessPool

from gpuexplore.jobs.worker import initialise
from gpuexplore.measure import process_settings
from gpuexplore.model import Device

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class DeviceProcess:
    """The worker of one device; a task starts it when there is none.

    Args:
        starter: a thread that lives as long as the worker shall: on Linux the signal that ends a
            child with its parent is sent when the thread that started the child ends.
    """

    def __init__(self, device: Device, starter: ThreadPoolExecutor) -> None:
        self.device = device
        self._starter = starter
        self._pool: ProcessPool | None = None
        self._pid: ProcessFuture[int] | None = None

    def schedule(self, function: Callable[..., Any], *arguments: Any) -> ProcessFuture[Any]:
        """Run `function` in the worker; its arguments and its answer are plain data."""
        if self._pool is not None and not self._pool.active:
            self.discard()  # it died while it had nothing to do
        if self._pool is None:
            self._start()
        assert self._pool is not None
        return self._pool.schedule(function, args=arguments)

    def discard(self) -> None:
        """Kill the worker and all its descendants; the next task gets a fresh one."""
        if self._pool is None or self._pid is None:
            return
        if self._pid.done() and self._pid.exception() is None:
            kill_tree(self._pid.result())
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()
        self._pool = self._pid = None

    def _start(self) -> None:
        self._pool = ProcessPool(
            max_workers=1,
            initializer=initialise,
            initargs=(worker_environment(self.device),),
            context=multiprocessing.get_context("spawn"),
        )
        self._pid = self._starter.submit(self._pool.schedule, os.getpid).result()


def worker_environment(device: Device) -> Mapping[str, str]:
    """Return the variables that must be set before numpy or CUDA is loaded: threads and visible devices."""
    threads = str(psutil.cpu_count(logical=False) or os.cpu_count() or 1)
    visible = device.uuid or device.id.partition(":")[2] if device.kind == "cuda" else ""
    return {**dict.fromkeys(THREAD_VARIABLES, threads), **process_settings(), "CUDA_VISIBLE_DEVICES": visible}


def kill_tree(pid: int) -> None:
    """Kill a worker, its descendants, and what is left of its process group when it is already dead."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.Process(pid).kill()
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
