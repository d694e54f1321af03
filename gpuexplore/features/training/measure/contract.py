"""Reports of a training, JSON on their way from the worker, and the records that they are made of. Loads no torch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from gpuexplore.core import OMIT_DEFAULT, Device, Environment, decode, encode, median, median_interval, paired_ratio
from gpuexplore.features.training.measure.setup import MODES, Setup
from gpuexplore.measure.conditions.isolation import is_contended

Losses = tuple[float | None, ...]  # None: not finite
PHASES = ("transfer", "forward", "backward", "optimizer")  # of a step, in order; only a GPU has the first
REPORT_EVERY_S = 0.3


@dataclass(frozen=True, slots=True)
class Timing:
    """The median of some times, or the ratio of two such medians, with its 95 % interval and the number of values.

    Attributes:
        ci95: by order statistics, of a ratio by those of the ratios step by step, and it includes the ratio of the
            medians; None under six values.
        by_round: the median of the ratios step by step, where it disagrees with that of the medians; else None.
    """

    median: float
    ci95: tuple[float, float] | None
    count: int
    by_round: float | None = field(default=None, metadata=OMIT_DEFAULT)

    @classmethod
    def of(cls, values: Sequence[float]) -> "Timing | None":
        """Return the timing of `values`; None where there are none."""
        return cls(median(values), median_interval(values), len(values)) if values else None

    @classmethod
    def ratio(cls, these: Sequence[float], others: Sequence[float]) -> "Timing | None":
        """Return the median of `these` over that of `others`, which were interleaved; None where there are none."""
        if not these or not others:
            return None
        value, ends, by_round = paired_ratio(these, others)
        return cls(value, ends, min(len(these), len(others)), by_round)


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """The duration of one phase of a step, in seconds.

    Attributes:
        name: one of PHASES.
    """

    name: str
    time_s: Timing


@dataclass(frozen=True, slots=True)
class Underflow:
    """The shares of zero gradients in fp16 late in training, when the loss is `loss`.

    Attributes:
        loss: cross-entropy of every sample, to whose right logit so much is added.
        unscaled: share of zeros, 0 to 1.
        scaled: the same after the loss was multiplied by `scale`.
        dead: share of zeros in fp32, of units that are off: no format could show these gradients.
    """

    loss: float
    scale: float
    unscaled: float
    scaled: float
    dead: float


@dataclass(frozen=True, slots=True)
class ModeReport:
    """The results of one mode.

    Attributes:
        name: a key of `MODES`; with ` x 2` for two processes.
        first_step: the step of the first of `losses`, counted from 0.
        losses: mean cross-entropy of each step's batch, before its update.
        step_s: seconds of a step, without the first and those that warm up.
        phases: the parts of it, which add up to its median.
        samples_per_s: batch over the median step.
        mfu: FLOPs of the model over the median step, as fraction of the peak; None where no peak is known.
        peak: what it is a fraction of, in words.
        ratio: the first mode's median step over this one's: above 1 this one is faster.
        zero_gradients: (step, share of gradients that are exactly zero), where they were counted.
        scales: (step, loss scale before it) where the scale changed, the first included; empty without a scaler.
        skipped_steps: steps whose update was left out, for a gradient was infinite or no number.
        first_call_s: seconds of the first step, which no median contains.
        error: of the first gradients, against float64: norm of the difference over the norm.
    """

    name: str
    first_step: int = 0
    losses: Losses = ()
    step_s: Timing | None = None
    phases: tuple[PhaseTime, ...] = ()
    samples_per_s: float | None = None
    mfu: float | None = None
    peak: str | None = None
    ratio: Timing | None = None
    zero_gradients: tuple[tuple[int, float], ...] = ()
    scales: tuple[tuple[int, float], ...] = ()
    skipped_steps: int = 0
    first_call_s: float | None = None
    error: float | None = None
    underflow: Underflow | None = None


@dataclass(frozen=True, slots=True)
class Processes:
    """The comparison of several processes, data parallel by DDP, with one process that takes the whole batch.

    Attributes:
        count: of them, one thread each on a CPU.
        backend: gloo or nccl.
        mode: the one they were compared in.
        speedup: one process's median step over theirs.
        efficiency: speedup over count; 1 is ideal.
        all_reduce_s: seconds of the all-reduce of all gradients, alone.
        communicating: all_reduce_s over the step: the share of it if nothing overlapped, so the most it can be.
        reduced_bytes: of the gradients of one step, 4 for each parameter.
        largest_loss_difference: between theirs and the one process's, relative, over all steps.
        data_parallel: of torch's `DataParallel` on the same GPUs, seconds of a step; None on a CPU.
    """

    count: int
    backend: str
    mode: str
    speedup: Timing | None
    efficiency: float | None
    all_reduce_s: Timing | None
    communicating: float | None
    reduced_bytes: int
    largest_loss_difference: float | None
    data_parallel: Timing | None = None


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The progress of a training; the last report has `final`, all losses, and the environment.

    Attributes:
        model: a name of a preset, or widths.
        parameters: how many numbers are learned.
        flop_count: of one step, forward and backward.
        chance_loss: the cross-entropy of guessing, ln of the number of classes.
        data: `rule` or `random`; random labels cannot be predicted, so no honest loss stays below chance_loss.
        steps_done: of each mode.
        stopped: why fewer steps than asked were done; None where all were.
        lost_cpu_share: of the machine's CPU time, what others took meanwhile; None where it is unknown or not over yet.
    """

    model: str
    batch: int
    steps: int
    classes: int
    parameters: int
    flop_count: int
    chance_loss: float
    data: str
    optimizer: str
    learning_rate: float
    seed: int
    threads: int
    steps_done: int = 0
    final: bool = False
    stopped: str | None = None
    doing: str | None = None
    modes: tuple[ModeReport, ...] = ()
    processes: Processes | None = None
    environment: Environment | None = None
    lost_cpu_share: float | None = None

    @property
    def is_contended(self) -> bool:
        """True if other work used so much of the CPU that times are unreliable."""
        return is_contended(self.lost_cpu_share)

    @property
    def is_contention_unknown(self) -> bool:
        """True if it has ended, and the CPU share of other work is unknown."""
        return self.final and self.lost_cpu_share is None

    def mode(self, name: str) -> ModeReport | None:
        """Return the mode called `name`."""
        return next((mode for mode in self.modes if mode.name == name), None)


def joined(payloads: Iterable[Mapping[str, Any]]) -> TrainingReport | None:
    """Return the newest report with all losses so far: each payload but the last one has only the new ones."""
    losses: dict[str, list[float | None]] = {}
    report = None
    for payload in payloads:
        report = decode(TrainingReport, dict(payload))
        for mode in report.modes:
            losses.setdefault(mode.name, [])[mode.first_step :] = mode.losses
    if report is None:
        return None
    whole = (replace(mode, first_step=0, losses=tuple(losses[mode.name])) for mode in report.modes)
    return replace(report, modes=tuple(whole))


def largest_difference(wanted: Sequence[float | None], found: Sequence[float | None]) -> float | None:
    """Return the largest relative difference of two courses of losses; None where one is not finite, or all are 0."""
    pairs = list(zip(wanted, found, strict=False))
    if any(before is None or after is None for before, after in pairs):
        return None
    return max((abs(after - before) / abs(before) for before, after in pairs if before and after), default=None)


class Course:
    """The steps of one mode, in order.

    Attributes:
        name: of the mode.
        zero_shares: (step, share) where zeros were counted.
        error: of the first gradients.
        underflow: see `Underflow`.
    """

    def __init__(self, name: str, dtype: str) -> None:
        self.name = name
        self.dtype = dtype
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
        self._setup = setup
        self._device = device

    def payload(self, *, doing: str | None = None) -> dict[str, Any]:
        """Return the report of how far it is, with the losses that are new."""
        done = self._steps_done()
        newest = slice(max(warm_up(self._setup), done - 200), done)  # of which a live report takes medians
        encoded = encode(self._report(newest, doing=doing))
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
    return min(setup.steps - 1, 1 + min(5, setup.steps // 5))


def _phase_times(phases_s: Sequence[Mapping[str, float]], times_s: Sequence[float]) -> tuple[PhaseTime, ...]:
    """Return what part of its step each phase took, as seconds of the median step, so that they add up to it."""
    steps = list(zip(phases_s, times_s, strict=True))
    order = sorted({name for phases in phases_s for name in phases}, key=PHASES.index)
    shares = {name: Timing.of([phases.get(name, 0.0) / step_s for phases, step_s in steps]) for name in order}
    known = {name: share for name, share in shares.items() if share}
    total = sum(share.median for share in known.values())
    if not total:
        return ()
    factor = median(times_s) * median([sum(phases.values()) / step_s for phases, step_s in steps]) / total
    return tuple(
        PhaseTime(
            name,
            Timing(share.median * factor, share.ci95 and (share.ci95[0] * factor, share.ci95[1] * factor), share.count),
        )
        for name, share in known.items()
    )
