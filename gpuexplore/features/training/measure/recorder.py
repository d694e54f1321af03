"""Records of the steps of each mode, and the reports of them: of what is new, and of all at the end."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from gpuexplore.core.model import Device, Environment
from gpuexplore.core.serialization import encode
from gpuexplore.core.statistics import median
from gpuexplore.features.training.measure.contract import (
    PHASES,
    ModeReport,
    PhaseTime,
    Processes,
    Timing,
    TrainingReport,
    Underflow,
)
from gpuexplore.features.training.measure.setup import MODES, Setup

REPORT_EVERY_S = 0.3
MOST_WARM_UP = 5
WARM_UP_SHARE = 5  # of the steps, one in so many at most warms up
LIVE_STEPS = 200  # the newest ones, of which a live report takes medians


class Course:
    """What the steps of one mode were, in order.

    Attributes:
        name: of the mode.
        zero_shares: (step, share) where zeros were counted.
        error: of the first gradients.
        underflow: see `Underflow`.
    """

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype
        self.losses: list[float | None] = []
        self.times_s: list[float] = []
        self.zero_shares: list[tuple[int, float]] = []
        self.error: float | None = None
        self.underflow: Underflow | None = None
        self.reported = 0
        self._phases_s: list[Mapping[str, float]] = []
        self._scales: list[tuple[int, float]] = []
        self._skipped = 0

    def add(self, step: Any) -> float:
        """Keep a `learner.LearnedStep`; return its seconds."""
        if step.scale is not None and (not self._scales or self._scales[-1][1] != step.scale):
            self._scales.append((len(self.losses), step.scale))
        self.losses.append(step.loss if isfinite(step.loss) else None)
        self.times_s.append(step.time_s)
        self._phases_s.append(step.phases_s)
        self._skipped += step.skipped
        return float(step.time_s)

    def report(self, setup: Setup, device: Device, settled: slice, first: "Course | None") -> ModeReport:
        """Return the report with the losses that no report had yet.

        Args:
            settled: the steps of which medians are taken.
            first: the mode to compare with; None for itself.
        """
        times_s = self.times_s[settled]
        step_s = Timing.of(times_s)
        peak = device.peak(self.dtype, "matrix")
        rate = setup.flop_count / step_s.median if step_s else None
        return ModeReport(
            name=self.name,
            first_step=self.reported,
            losses=tuple(self.losses[self.reported :]),
            step_s=step_s,
            phases=_phase_times(self._phases_s[settled], times_s),
            samples_per_s=setup.batch / step_s.median if step_s else None,
            mfu=rate / peak.flop_per_s if rate and peak else None,
            peak=f"{peak.kind.replace('_', ' ')}, {peak.source}" if peak else None,
            ratio=Timing.ratio(first.times_s[settled], times_s) if first else None,
            zero_gradients=tuple(self.zero_shares),
            scales=tuple(self._scales),
            skipped_steps=self._skipped,
            first_call_s=self.times_s[0] if self.times_s else None,
            error=self.error,
            underflow=self.underflow,
        )


class Recorder:
    """All modes of a training.

    Args:
        setup: what is trained.
        names: of the modes, in order.
        threads: of a process.
    """

    def __init__(self, setup: Setup, names: Sequence[str], device: Device, threads: int) -> None:
        self.courses = {name: Course(name, MODES[name.partition(" ")[0]].dtype) for name in names}
        self.threads = threads
        self._setup, self._device = setup, device

    def payload(self, *, doing: str | None = None) -> dict[str, Any]:
        """Return the report of how far it is, with the losses that are new."""
        done = self._steps_done()
        encoded = encode(self._report(slice(max(warm_up(self._setup), done - LIVE_STEPS), done), doing=doing))
        for course in self.courses.values():
            course.reported = len(course.losses)
        return dict(encoded)

    def last_payload(
        self, environment: Environment | None, *, stopped: str | None = None, processes: Processes | None = None
    ) -> dict[str, Any]:
        """Return the report of it all."""
        for course in self.courses.values():
            course.reported = 0
        report = self._report(self.settled, final=True, stopped=stopped, processes=processes, environment=environment)
        return dict(encode(report))

    @property
    def settled(self) -> slice:
        """The steps of which medians are taken."""
        return slice(warm_up(self._setup), self._steps_done())

    def _steps_done(self) -> int:
        return min(len(course.losses) for course in self.courses.values())

    def _report(self, settled: slice, **more: Any) -> TrainingReport:
        courses = list(self.courses.values())
        modes = tuple(
            course.report(self._setup, self._device, settled, courses[0] if number else None)
            for number, course in enumerate(courses)
        )
        return report_of(self._setup, self.threads, modes=modes, steps_done=self._steps_done(), **more)


def report_of(setup: Setup, threads: int, **more: Any) -> TrainingReport:
    """Return the report of a training of `setup`, with `more` of its fields."""
    return TrainingReport(
        model=setup.model.name,
        batch=setup.batch,
        steps=setup.steps,
        classes=setup.model.classes,
        parameters=setup.model.parameters,
        flop_count=setup.flop_count,
        chance_loss=setup.chance_loss,
        data=setup.data,
        optimizer=setup.optimizer,
        learning_rate=setup.learning_rate,
        seed=setup.seed,
        threads=threads,
        **more,
    )


def warm_up(setup: Setup) -> int:
    """Return how many steps are left out of medians: the first, and up to five that warm up."""
    return min(setup.steps - 1, 1 + min(MOST_WARM_UP, setup.steps // WARM_UP_SHARE))


def _phase_times(phases_s: Sequence[Mapping[str, float]], times_s: Sequence[float]) -> tuple[PhaseTime, ...]:
    """Return what part of its step each phase took, as seconds of the median step, so that they add up to it."""
    steps = list(zip(phases_s, times_s, strict=True))
    order = sorted({name for phases in phases_s for name in phases}, key=PHASES.index)
    shares = {name: Timing.of([phases.get(name, 0.0) / step_s for phases, step_s in steps]) for name in order}
    known = {name: share for name, share in shares.items() if share}
    total = sum(share.median for share in known.values())
    if not total:
        return ()
    covered = median([sum(phases.values()) / step_s for phases, step_s in steps])
    factor = median(times_s) * covered / total
    return tuple(PhaseTime(name, share.scaled(factor)) for name, share in known.items())
