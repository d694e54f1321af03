"""The engine of this machine: one warm worker process per device, one device at a time.

One at a time, because whatever runs on this host disturbs whatever is measured on it. The lock of the device excludes
other processes of gpuexplore meanwhile.
"""

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from gpuexplore.activity import Activity, ActivityReport, kind_named
from gpuexplore.core import Case, Device, GpuExploreError, InvalidInput, Result, Status, check_known, write_json
from gpuexplore.hardware import GPU_KINDS
from gpuexplore.jobs.engines import IsCancelled, WorkerLimits, pooled
from gpuexplore.jobs.engines.worker_process import CANCELLATION, Attempt, Failure, Worker
from gpuexplore.jobs.journal import TASK, WorkerTask
from gpuexplore.jobs.locks import HostLock, asking_for_cpu, compiler_lock, device_lock
from gpuexplore.measure.conditions.spread import note_results

LOG = logging.getLogger(__name__)
RUNNER = "gpuexplore.measure.runner"
RUNNER_OF_KIND = {"simulated": "gpuexplore.jobs.simulated_runner"}
POLL_S = 0.01
MOST_COMPILING_S = 5.0  # between two groups of cases

OnEvent = Callable[[Case | Result], None]


class LocalEngine:
    """The default engine.

    Args:
        devices: what may be measured.
        runner: module with `measure_cases` and `warm_up`, loaded in the workers only.
        limits: after which a worker counts as hanging.
    """

    side_by_side = False

    def __init__(self, devices: Sequence[Device], *, runner: str = RUNNER, limits: WorkerLimits | None = None) -> None:
        # Linux ends a child when the thread that started it ends: this one lives as long as the engine
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker-starter")
        self._runner = runner
        self._devices = {device.id: device for device in devices}
        self._workers: dict[str, Worker] = {}
        self._limits = limits or WorkerLimits()
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._runs_waiting = 0
        self._compilers_s = MOST_COMPILING_S  # that compilers may take before the next group of cases
        self._closing = threading.Event()

    def start(self, device: Device) -> None:
        """Start the worker of `device`, where it is one of this engine's: it loads what every task needs meanwhile."""
        if device.id in self._devices:
            self._worker_of(device)

    def warm(self, device: Device) -> Device:
        """Load the libraries in the device's worker; return the device with its ceilings.

        A run that comes meanwhile goes first, as soon as the worker is between two of them, and the rest is loaded
        after it.

        Raises:
            InvalidInput: the device is none of this engine's.
            GpuExploreError: the worker cannot be used, or the engine is closing.
        """
        check_known("device", device.id, self._devices)
        while True:
            attempt = Attempt((), lambda _: None, replace(self._limits, grace_s=0.0), hurries=self._is_waited_for)
            with self._exclusive(device, self._closing.is_set) as acquired:
                if not acquired or self._closing.is_set():
                    raise GpuExploreError(f"{device.id} was not warmed up: the engine is closing")
                failure = self._carry_out(attempt, self._task(device), self._closing.is_set)
            if failure is not None or attempt.ended is None or attempt.ended.device is None:
                raise GpuExploreError(f"{device.id} was not warmed up: {failure.reason if failure else 'no answer'}")
            if not attempt.hurried:
                return attempt.ended.device
            while self._is_waited_for() and not self._closing.is_set():
                time.sleep(POLL_S)

    def _is_waited_for(self) -> bool:
        return self._runs_waiting > 0

    def measure(self, cases: Sequence[Case], on_event: OnEvent, cancelled: IsCancelled) -> None:
        """Measure cases of one device; see `Engine.measure`.

        Raises:
            GpuExploreError: the worker ends again and again before it takes up a case.
        """
        device = self._devices.get(cases[0].device)
        if device is None:
            reason = str(InvalidInput.of("device", cases[0].device, self._devices))
            _end_all(cases, Failure(Status.UNSUPPORTED, reason), on_event)
            return
        with self._goes_first(), self._exclusive(device, cancelled) as acquired:
            if not acquired:
                _end_all(cases, CANCELLATION, on_event)
            elif cases[0].options.repeat > 1:
                self._measure_in_fresh_processes(device, cases, on_event=on_event, cancelled=cancelled)
            else:
                self._measure_and_learn(device, cases, on_event=on_event, cancelled=cancelled)

    def perform(
        self, activity: Activity, on_observation: Callable[[ActivityReport], None], cancelled: IsCancelled
    ) -> None:
        """Do an activity in its device's worker; see `Engine.perform`.

        Raises:
            InvalidInput: no such kind, or the device is none of this engine's.
            GpuExploreError: it failed, or its worker did.
        """
        able = {name: device for name, device in self._devices.items() if device.kind not in RUNNER_OF_KIND}
        check_known("device", activity.device, able)
        device = able[activity.device]
        module = kind_named(activity.kind).module if self._runner == RUNNER else self._runner
        attempt = Attempt((), lambda _: None, self._limits, on_observation=on_observation)
        task = WorkerTask(module, device, activity=activity)
        with self._goes_first(), self._exclusive(device, cancelled) as acquired:
            failure = self._carry_out(attempt, task, cancelled) if acquired and not cancelled() else CANCELLATION
        if failure is not None and failure.status is not Status.CANCELLED:
            raise GpuExploreError(failure.reason)
        if attempt.ended is not None and attempt.ended.failure and not cancelled():
            raise GpuExploreError(attempt.ended.failure)

    def close(self) -> None:
        """Kill the workers with everything they started."""
        self._closing.set()
        with self._lock:
            for device in self._devices.values():
                self._discard_worker_of(device)
        self._starter.shutdown()

    @contextmanager
    def _goes_first(self) -> Iterator[None]:
        """Inside, a warm-up gives way."""
        with self._counting:
            self._runs_waiting += 1
        try:
            yield
        finally:
            with self._counting:
                self._runs_waiting -= 1

    @contextmanager
    def _exclusive(self, device: Device, stop: IsCancelled) -> Iterator[bool]:
        """Wait for this engine's lock and the device's; yield whether both are held, unless `stop` came first."""
        lock = device_lock(device)
        engine_is_ours = _acquired(self._lock, stop)
        try:
            both = engine_is_ours and self._let_compile(device, stop) and _locked(lock, stop, asks=device.kind == "cpu")
            began_s = time.monotonic()
            yield both
            if both:
                earned_s = 0.15 * (time.monotonic() - began_s)  # so long compilers and interpreters of pages go first
                self._compilers_s = min(self._compilers_s + earned_s, MOST_COMPILING_S)
        finally:
            lock.release()
            if engine_is_ours:
                self._lock.release()

    def _let_compile(self, device: Device, stop: IsCancelled) -> bool:
        """Wait for a compiler that wants or has the CPU, while it has not had its share.

        Returns:
            False when `stop` came first.
        """
        if device.kind != "cpu":
            return True
        lock = compiler_lock()
        began_s = time.monotonic()
        while lock.is_held() and time.monotonic() - began_s < self._compilers_s:
            if stop():
                return False
            time.sleep(POLL_S)
        self._compilers_s = max(self._compilers_s - (time.monotonic() - began_s), 0.0)
        return True

    def _measure_in_fresh_processes(
        self, device: Device, cases: Sequence[Case], *, on_event: OnEvent, cancelled: IsCancelled
    ) -> None:
        """Measure in as many processes as the cases ask for, and report a result of all; a failure ends its case."""
        results: dict[Case, list[Result]] = {case: [] for case in cases}

        def keep(event: Case | Result) -> None:
            if isinstance(event, Case):
                on_event(event)
            elif not event.provisional:  # its process goes on
                results[event.case].append(event)

        for _ in range(cases[0].options.repeat):
            left = [case for case in cases if all(result.status is Status.OK for result in results[case])]
            if left:
                self._discard_worker_of(device)
                self._measure_and_learn(device, left, on_event=keep, cancelled=cancelled)
        for found in results.values():
            on_event(pooled(found))

    def _measure_and_learn(
        self, device: Device, cases: Sequence[Case], *, on_event: OnEvent, cancelled: IsCancelled
    ) -> None:
        """Measure, and note what this process found with what others did: later intervals know their spread."""
        found: list[Result] = []

        def keep(event: Case | Result) -> None:
            if isinstance(event, Result):
                found.append(event)
            on_event(event)

        self._measure(device, cases, on_event=keep, cancelled=cancelled)
        worker = self._workers.get(device.id)
        if worker is not None and self._runner_of(device) == RUNNER:
            note_results(device, worker.name, found)

    def _measure(self, device: Device, cases: Sequence[Case], *, on_event: OnEvent, cancelled: IsCancelled) -> None:
        """Try until every case has a final result.

        A failure is attributed to a case when no other can have caused it. Rounds of cases alternate, so the case that
        was at work when the worker ended, or that met the error of a broken CUDA context, is first tried alone, in a
        fresh process.
        """
        to_try = [list(cases)]
        false_starts = 0
        passed: dict[Case, Result] = {}
        while to_try:
            attempt = Attempt(to_try.pop(), on_event, self._limits)
            task = self._task(device, attempt.pending)
            failure = CANCELLATION if cancelled() else self._carry_out(attempt, task, cancelled)
            if failure is None:
                continue
            passed |= attempt.provisional
            stood = attempt.report_kept(failure)
            suspects = attempt.suspects(failure)
            if failure.status is Status.CANCELLED:
                for case in attempt.pending:
                    if case in passed:
                        on_event(replace(passed[case], provisional=False))
                    else:
                        _end_all([case], CANCELLATION, on_event)
            elif stood:
                to_try.append(attempt.pending)
            elif len(suspects) == 1:
                _end_all(suspects, failure, on_event)
                to_try.append(_without(attempt.pending, suspects))
            elif suspects:
                to_try += [_without(attempt.pending, suspects[-1:]), suspects[-1:]]
            else:
                false_starts += 1
                to_try.append(attempt.pending)
            if false_starts == 3:
                raise GpuExploreError(f"{failure.reason}, {false_starts} times before it started a case")
            to_try = [cases for cases in to_try if cases]

    def _task(self, device: Device, cases: Sequence[Case] = ()) -> WorkerTask:
        return WorkerTask(self._runner_of(device), device, tuple(cases))

    def _runner_of(self, device: Device) -> str:
        return RUNNER_OF_KIND.get(device.kind, self._runner)

    def _carry_out(self, attempt: Attempt, task: WorkerTask, cancelled: IsCancelled) -> Failure | None:
        """Let the worker work once; afterwards it is warm, or gone when it cannot be trusted any more."""
        device = task.device
        healthy = False
        try:
            with tempfile.TemporaryDirectory(prefix="gpuexplore-", ignore_cleanup_errors=True) as name:
                directory = Path(name)
                write_json(directory / TASK, task)
                failure = attempt.follow(self._worker_of(device), directory, cancelled)
            healthy = failure is None and not _is_tainted(device, attempt)
            return failure
        finally:
            if not healthy:
                self._discard_worker_of(device)

    def _worker_of(self, device: Device) -> Worker:
        """Return the warm worker of a device, or a new one where there is none or it died while it was idle."""
        worker = self._workers.get(device.id)
        if worker is not None and worker.exit_code() is not None:
            self._discard_worker_of(device)
            worker = None
        if worker is None:
            worker = self._workers[device.id] = self._starter.submit(Worker, device, self._runner_of(device)).result()
        return worker

    def _discard_worker_of(self, device: Device) -> None:
        """Kill the worker with everything it started; the next task gets a fresh one."""
        worker = self._workers.pop(device.id, None)
        if worker is not None:
            worker.end()


def _acquired(lock: threading.Lock, stop: IsCancelled) -> bool:
    """Wait for `lock`; return False when `stop` came first."""
    while not lock.acquire(timeout=POLL_S):
        if stop():
            return False
    return True


def _locked(lock: HostLock, stop: IsCancelled, *, asks: bool) -> bool:
    """Wait for another process to release `lock`, which pages do at once where `asks`; False when `stop` came."""
    try:
        with asking_for_cpu() if asks else nullcontext():
            lock.acquire(cancel_check=lambda: bool(stop()))
    except TimeoutError:
        return False
    return True


def _is_tainted(device: Device, attempt: Attempt) -> bool:
    """Return whether a task that went well left something behind that the next one would meet."""
    left_behind = attempt.ended.left_behind if attempt.ended else 0
    if left_behind:
        LOG.warning(
            "%d processes or threads were left running on %s: they are ended with their worker", left_behind, device.id
        )
    may_break_context = attempt.statuses & {Status.OUT_OF_MEMORY, Status.ERROR}
    return left_behind > 0 or (device.kind in GPU_KINDS and bool(may_break_context))


def _end_all(cases: Sequence[Case], failure: Failure, on_event: OnEvent) -> None:
    for case in cases:
        on_event(Result(case, failure.status, failure.reason))


def _without(cases: Sequence[Case], others: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case not in others]
