"""The findings of a check, and the report of all of them: as text, and as one HTML file that can be sent.

The bench of the checks: the device's own worker process, the time that is left, and the folder of the report.

Everything that touches the device happens in a worker of `LocalEngine`, as in the app: what crashes there, hangs or
breaks the CUDA context ends with its process, and the next check gets a fresh one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.core import (
    UNKNOWN,
    Case,
    Device,
    Result,
    Status,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_seconds,
    format_si,
)
from gpuexplore.hardware import GPU_KINDS
from gpuexplore.jobs.engines import WorkerLimits, batches_of
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.locks import device_lock
from gpuexplore.measure.candidates.failure import lost_reason

FULL_S = 600.0
QUICK_S = 120.0
FRACTION = "fraction"
INTERRUPTED = "interrupted"


class CheckVerdict(StrEnum):
    """The verdict of a check."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckFigure:
    """A quantity that a check found.

    Attributes:
        name: of what.
        value: in SI base units, or a text; None is unknown.
        unit: of the value: a key of the formats, e.g. `s`; empty: a count, or a text.
        note: what to compare it with.
    """

    name: str
    value: float | str | None
    unit: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """The value as people read it."""
        if isinstance(self.value, str):
            return self.value
        formats: Mapping[str, Callable[[float | None], str]] = {
            "s": format_seconds,
            "B": format_bytes,
            "B/s": format_bytes_per_s,
            "FLOP/s": format_flop_per_s,
            "Hz": lambda value: format_si(value, "Hz"),
            "W": lambda value: format_si(value, "W"),
            FRACTION: format_percent,
            "": lambda value: UNKNOWN if value is None else f"{value:g}",
        }
        return formats[self.unit](self.value)


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The findings of a check.

    Attributes:
        said: sentences: why it failed or was skipped, else what to know.
        figures: what it rests on.
    """

    verdict: CheckVerdict
    said: tuple[str, ...] = ()
    figures: tuple[CheckFigure, ...] = ()


def judged(
    problems: list[str], figures: list[CheckFigure], notes: tuple[str, ...] = (), *, untried: str = ""
) -> CheckFinding:
    """Return a finding that fails where there are problems; `notes` are said in either case.

    Args:
        untried: what was not checked, and why: without it nothing has passed.
    """
    verdict = CheckVerdict.FAIL if problems else CheckVerdict.SKIPPED if untried else CheckVerdict.PASS
    return CheckFinding(verdict, (*problems, *filter(None, [untried]), *notes), tuple(figures))


def ended(result: Result) -> str:
    """Return how a case ended, and why, where it did not end well."""
    case = result.case
    return f"{case.operation} {case.shape} {case.dtype} {case.implementation} ended {result.status}: {result.reason}"


def skipped(reason: str, figures: tuple[CheckFigure, ...] = ()) -> CheckFinding:
    """Return the finding of what was not checked."""
    return CheckFinding(CheckVerdict.SKIPPED, (reason,), figures)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The outcome and the duration of one check."""

    name: str
    title: str
    verdict: CheckVerdict
    said: tuple[str, ...]
    figures: tuple[CheckFigure, ...]
    lasted_s: float


@dataclass(frozen=True, slots=True)
class SelftestReport:
    """The report of a self-test.

    Attributes:
        stand_in: what stood in for the device, so that its figures are not taken for measured ones; empty: nothing.
        no_gpu: why no GPU was tested; empty: one was.
    """

    started_utc: str
    app_version: str
    commit: str | None
    command: str
    device: Device
    is_quick: bool
    lasted_s: float
    outcomes: tuple[CheckOutcome, ...]
    stand_in: str = ""
    no_gpu: str = ""
    schema_version: int = 1

    @property
    def has_failed(self) -> bool:
        """True if a check failed."""
        return any(outcome.verdict is CheckVerdict.FAIL for outcome in self.outcomes)

    @property
    def is_interrupted(self) -> bool:
        """True if it ended before all checks had run."""
        return any(INTERRUPTED in outcome.said for outcome in self.outcomes)

    def count(self, verdict: CheckVerdict) -> int:
        """Return how many checks ended so."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        counts = ", ".join(f"{self.count(verdict)} {words}" for verdict, words in _WORDS.items())
        after = f", {INTERRUPTED} after" if self.is_interrupted else ", in"
        return f"{self.device.title}: {counts}{after} {format_seconds(self.lasted_s)}"


_WORDS = {CheckVerdict.PASS: "passed", CheckVerdict.FAIL: "failed", CheckVerdict.SKIPPED: "skipped"}
Payload = Mapping[str, Any]


# A report as one self-contained HTML file, which can be sent.


def report_html(report: SelftestReport) -> str:
    """Return the report as an HTML document."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["seconds"] = format_seconds
    template = environment.from_string(Path(__file__).with_name("report.html.jinja").read_text(encoding="utf-8"))
    return template.render(report=report, style=Path(__file__).with_name("report.css").read_text(encoding="utf-8"))


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
