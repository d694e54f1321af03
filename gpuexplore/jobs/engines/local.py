"""Measures on this machine: one warm process per device, one group at a time.

One at a time, because whatever runs on this host disturbs whatever is measured on it. The lock of
the device keeps other processes of gpuexplore away meanwhile.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import Timeout

from gpuexplore.errors import GpuExploreError, InvalidInput
from gpuexplore.jobs.engines.attempt import CANCELLATION, Attempt, Failure, Limits, failure_of
from gpuexplore.jobs.engines.process import DeviceProcess
from gpuexplore.jobs.locks import device_lock
from gpuexplore.jobs.worker import measure_to_journal, warm_up
from gpuexplore.model import Case, Device, Result, Status
from gpuexplore.serialization import decode, encode

RUNNER = "gpuexplore.measure.runner"
MAX_FALSE_STARTS = 3
BREAKS_CUDA = {Status.OUT_OF_MEMORY, Status.ERROR}  # the context may be unusable afterwards
CLOSING_S = 0.1  # how soon a warm-up notices that the engine closes

OnEvent = Callable[[Case | Result], None]
IsCancelled = Callable[[], bool]


class LocalEngine:
    """The default engine.

    Args:
        devices: what may be measured.
        runner: module with `measure_group` and `warm_up`, loaded in the workers only.
        limits: after which a worker counts as hanging.
    """

    def __init__(self, devices: Sequence[Device], *, runner: str = RUNNER, limits: Limits | None = None) -> None:
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker-starter")
        self._processes = {device.id: DeviceProcess(device, self._starter) for device in devices}
        self._runner = runner
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def warm(self, device: Device) -> Device:
        """Load the libraries in the device's worker; return the device with its ceilings.

        Raises:
            InvalidInput: the device is none of this engine's.
            GpuExploreError: the worker cannot be used, or the engine is closing.
        """
        if device.id not in self._processes:
            raise InvalidInput.of("device", device.id, self._processes)
        process = self._processes[device.id]
        with self._exclusive(process.device, self._closing.is_set) as acquired:
            if not acquired or self._closing.is_set():
                raise GpuExploreError(f"{device.id} was not warmed up: the engine is closing")
            task = process.schedule(warm_up, self._runner, encode(device))
            failure = self._finish_warming(task)
            if failure is not None:
                process.discard()
                raise GpuExploreError(f"{device.id} was not warmed up: {failure.reason}")
            return decode(Device, task.result())

    def measure(self, cases: Sequence[Case], on_event: OnEvent, cancelled: IsCancelled) -> None:
        """Measure cases of one group; see `Engine.measure`.

        Raises:
            GpuExploreError: the worker ends again and again before it takes up a case.
        """
        process = self._processes.get(cases[0].device)
        if process is None:
            reason = str(InvalidInput.of("device", cases[0].device, self._processes))
            _end_all(cases, Failure(Status.UNSUPPORTED, reason), on_event)
            return
        with self._exclusive(process.device, cancelled) as acquired:
            if acquired:
                self._measure(process, cases, on_event=on_event, cancelled=cancelled)
            else:
                _end_all(cases, CANCELLATION, on_event)

    def close(self) -> None:
        """Kill the workers with everything they started."""
        self._closing.set()
        with self._lock:
            for process in self._processes.values():
                process.discard()
        self._starter.shutdown()

    @contextmanager
    def _exclusive(self, device: Device, stop: IsCancelled) -> Iterator[bool]:
        """Wait for the device's lock; yield whether it was acquired, which it is not when `stop` came first."""
        lock = device_lock(device)
        with self._lock:
            try:
                lock.acquire(cancel_check=stop)
            except Timeout:
                yield False
                return
            try:
                yield True
            finally:
                lock.release()

    def _finish_warming(self, task: Future[Any]) -> Failure | None:
        deadline_s = time.monotonic() + self._limits.start_s
        while not task.done():
            if self._closing.is_set():
                return Failure(Status.CANCELLED, "the engine is closing")
            if time.monotonic() > deadline_s:
                return Failure(Status.TIMEOUT, f"it took more than {self._limits.start_s:g} s")
            wait((task,), timeout=CLOSING_S)
        return failure_of(task)

    def _measure(
        self, process: DeviceProcess, cases: Sequence[Case], *, on_event: OnEvent, cancelled: IsCancelled
    ) -> None:
        """Try until every case has a result.

        A failure is attributed to a case when no other can have caused it. The implementations of a group
        take turns, so the one that was taken up last, or met the error of a broken CUDA context, is first tried
        alone, in a fresh process.
        """
        to_try, false_starts = [list(cases)], 0
        while to_try:
            attempt = Attempt(to_try.pop(), on_event)
            failure = CANCELLATION if cancelled() else self._try(process, attempt, cancelled)
            if failure is None:
                continue
            suspects = attempt.suspects()
            if failure.status is Status.CANCELLED:
                _end_all(attempt.pending, failure, on_event)
            elif len(suspects) == 1:
                _end_all(suspects, failure, on_event)
                to_try.append(_without(attempt.pending, suspects))
            elif suspects:
                to_try += [_without(attempt.pending, suspects[-1:]), suspects[-1:]]
            else:
                false_starts += 1
                to_try.append(attempt.pending)
            if false_starts == MAX_FALSE_STARTS:
                raise GpuExploreError(f"{failure.reason}, {false_starts} times before it took up a case")
            to_try = [cases for cases in to_try if cases]

    def _try(self, process: DeviceProcess, attempt: Attempt, cancelled: IsCancelled) -> Failure | None:
        """Let the worker measure once; afterwards it is warm, or gone when it cannot be trusted any more."""
        healthy = False
        try:
            with tempfile.TemporaryDirectory(prefix="gpuexplore-", ignore_cleanup_errors=True) as directory:
                group, device = encode(attempt.pending), encode(process.device)
                task = process.schedule(measure_to_journal, self._runner, group, device, directory)
                failure = attempt.follow(task, Path(directory), limits=self._limits, cancelled=cancelled)
            suspicious = process.device.kind == "cuda" and attempt.statuses & BREAKS_CUDA
            healthy = failure is None and not suspicious
            return failure
        finally:
            if not healthy:
                process.discard()


def _end_all(cases: Sequence[Case], failure: Failure, on_event: OnEvent) -> None:
    for case in cases:
        on_event(Result(case, failure.status, failure.reason))


def _without(cases: Sequence[Case], others: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case not in others]
