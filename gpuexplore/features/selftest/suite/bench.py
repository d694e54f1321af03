"""The bench of the checks: the device's own worker process, the time that is left, and the folder of the report.

Everything that touches the device happens in a worker of `LocalEngine`, as in the app: what crashes there, hangs or
breaks the CUDA context ends with its process, and the next check gets a fresh one.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.core.model import Case, Device, Result, Status
from gpuexplore.features.selftest.suite.contract import CheckFinding, Payload
from gpuexplore.hardware import GPU_KINDS
from gpuexplore.jobs.engines import WorkerLimits, batches_of
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.locks import device_lock
from gpuexplore.measure.candidates.failure import lost_reason

WORKER = "gpuexplore.features.selftest.suite.worker"
LONGEST_PROBE_S = 60.0
LIMITS = WorkerLimits(start_s=60.0)
MIN_LEFT_S = 0.5  # in less a worker carries nothing out
DEFAULT_SOURCE = "selftest"


class Bench:
    """A device under test.

    Args:
        device: as discovered.
        is_quick: whether two minutes are to do.
        folder: where files of the report go.
        by: who measures, for the recording.

    Attributes:
        unusable: libraries that find no GPU, or another one; what the check of the environment says of them.
    """

    def __init__(self, device: Device, *, is_quick: bool, folder: Path, by: str = DEFAULT_SOURCE) -> None:
        self.device = device
        self.is_quick = is_quick
        self.folder = folder
        self.by = by
        self.unusable: set[str] = set()
        self.progress: Callable[[str], None] = lambda _: None
        self._until_s = time.monotonic()
        self._opened: LocalEngine | None = None
        self._limits = LIMITS

    def allow(self, seconds: float) -> None:
        """Give the next check so much time from now on."""
        self._until_s = time.monotonic() + seconds

    def left_s(self) -> float:
        """Return the seconds that are left to the check that runs."""
        return max(0.0, self._until_s - time.monotonic())

    def is_over(self) -> bool:
        """Return whether its time is over."""
        return self.left_s() <= 0

    def warm(self) -> None:
        """Load the libraries in the worker; a CPU gets its measured peaks.

        Raises:
            GpuExploreError: the device cannot be used; the text says why.
        """
        self.progress("loading the libraries")
        self.device = self._engine().warm(self.device)

    def measure(self, cases: Sequence[Case]) -> tuple[Result, ...]:
        """Return the final results of `cases`, of all that the time was enough for."""
        results: list[Result] = []

        def take(event: Case | Result) -> None:
            if isinstance(event, Case):
                self.progress(f"{event.operation} {event.shape} {event.dtype} {event.implementation}")
            elif not event.provisional:
                results.append(event)

        for batch in batches_of(cases):
            if self.left_s() > MIN_LEFT_S:
                self._engine().measure(batch, take, self.is_over)
        return tuple(result for result in results if result.status is not Status.CANCELLED)

    def probe(self, name: str, **arguments: str) -> list[Payload]:
        """Return what a probe reports from the worker, as far as the time was enough for it.

        Raises:
            GpuExploreError: it failed; the text says why.
        """
        payloads: list[Payload] = []
        asked = {"probe": name, **arguments}
        self.progress(", ".join(asked.values()))
        activity = Activity("selftest", tuple(asked.items()), self.device.id, LONGEST_PROBE_S)

        def take(report: ActivityReport) -> None:
            payloads.append(report.payload)

        if self.left_s() > MIN_LEFT_S:
            self._engine().perform(activity, take, self.is_over)
        return payloads

    def no_answer(self) -> str:
        """Return why the worker answered nothing although nothing failed; whose process has the device is not said."""
        holder = device_lock(self.device).holder()
        return f"out of time: {self.device.id} is being used by process {holder.pid}" if holder else "out of time"

    @contextmanager
    def hanging_after(self, seconds: float) -> Iterator[None]:
        """Within it a case that is not built and called in so many seconds ends with a timeout."""
        self.release()
        self._limits = replace(LIMITS, build_s=seconds)
        try:
            yield
        finally:
            self.release()
            self._limits = LIMITS

    def libraries(self) -> tuple[str, ...]:
        """Return the installed libraries that run on the device and have a timer of their own."""
        return tuple(name for name in _libraries(self.device.kind) if name not in self.unusable)

    def lost(self) -> str | None:
        """Return that the driver has lost the GPU, or None."""
        return lost_reason(self.device)

    def release(self) -> None:
        """End the worker; whatever is measured next gets a fresh one."""
        opened = self._opened
        self._opened = None
        if opened is not None:
            opened.close()

    def _engine(self) -> LocalEngine:
        self._opened = self._opened or LocalEngine([self.device], runner=WORKER, limits=self._limits)
        return self._opened


@cache
def _libraries(kind: str) -> tuple[str, ...]:
    by_timer: dict[object, str] = {}
    for name in BACKENDS:
        backend = load_backend(name)
        if kind in backend.DEVICE_KINDS and backend.is_available():
            by_timer.setdefault(backend.timer, name)
    return tuple(by_timer.values())


# What a check is.


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Something that has to be true.

    Attributes:
        name: for JSON and the documentation.
        title: for readers.
        run: finds out on a bench; whatever it raises is a failure.
        kinds: of devices it is for.
        needs_s: seconds below which it is not begun.
        share: of the whole time, which it may use at most.
        in_quick: whether it is part of the quick test.
    """

    name: str
    title: str
    run: Callable[[Bench], CheckFinding]
    kinds: tuple[str, ...] = ("cpu", *GPU_KINDS)
    needs_s: float = 5.0
    share: float = 0.2
    in_quick: bool = True
