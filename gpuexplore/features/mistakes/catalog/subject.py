"""The subject of a mistake, ready to be timed as for any result; its interleaved samples; and what is observed of it.

What drifts hits both ways alike, and the factor between them comes from pairs of one round, as speedups do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from gpuexplore.core import (
    Accuracy,
    Cancelled,
    Case,
    Environment,
    FlagName,
    Measurement,
    Shape,
    format_interval,
    median,
    median_interval,
    paired_ratio,
)
from gpuexplore.features.mistakes.catalog import (
    Detection,
    Factor,
    MistakeObservation,
    Stage,
    WayReading,
    observed,
)
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.check import AnyReference, Group, describe, judge, open_group
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.measure.sample.timing import (
    MIN_SAMPLES,
    PRECISION,
    WARM_UP_IDLE_GPU_S,
    WARM_UP_S,
    Sampling,
    plan_rounds,
    warm_up,
)

BUDGET_S = 1.5  # of rounds: a demonstration is watched
MAX_ROUNDS = 100

Procedure = Callable[[], float]  # follows one way of measuring, and returns the figure that it gives


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Figures of the wrong way and of the right one; figures of one index come from one round."""

    wrong: tuple[float, ...]
    right: tuple[float, ...]

    @property
    def factor(self) -> Factor:
        """The median of the wrong ones over that of the right ones, with its interval round by round."""
        ratio, ends, _ = paired_ratio(self.wrong, self.right)
        return Factor(ratio, ends)

    def as_rates(self, work: float) -> "_Pairs":
        """Return `work` over the figures, which are seconds."""
        return _Pairs(tuple(work / figure for figure in self.wrong), tuple(work / figure for figure in self.right))


def interleave(wrong: Procedure, right: Procedure, stage: Stage) -> _Pairs:
    """Return figures of both, one of each per round and in random order, until both medians are known within 1 %.

    Not before ten rounds, and not much longer than the budget.

    Raises:
        Cancelled: a stop was requested.
    """
    random = Random(20)
    start = stage.clock()
    wrongs: list[float] = []
    rights: list[float] = []
    while not (
        len(rights) >= MIN_SAMPLES
        and (
            (stage.clock() - start) * 1e-9 >= BUDGET_S
            or len(rights) >= MAX_ROUNDS
            or all(_is_precise(figures) for figures in (wrongs, rights))
        )
    ):
        if stage.progress.cancelled():
            raise Cancelled("cancelled while a mistake was demonstrated")
        for procedure, figures in random.sample([(wrong, wrongs), (right, rights)], 2):
            figures.append(procedure())
    return _Pairs(tuple(wrongs), tuple(rights))


def _reading(figures: tuple[float, ...]) -> WayReading:
    """Return the median of figures that were sampled, with its interval."""
    return WayReading(median(figures), median_interval(figures))


def _is_precise(figures: list[float]) -> bool:
    interval = median_interval(figures)
    return interval is not None and interval[1] - interval[0] <= 2 * PRECISION * median(figures)


@dataclass(frozen=True, slots=True)
class Subject:
    """A candidate, what its group shares, and about how many seconds one of its calls takes."""

    candidate: Candidate
    group: Group
    call_s: float

    @property
    def case(self) -> Case:
        """The case that is computed."""
        return self.candidate.case

    @property
    def environment(self) -> Environment:
        """The environment of the computation."""
        return self.group.environment

    @property
    def flop_count(self) -> int:
        """FLOPs of a call."""
        return self.group.operation.flop_count(self.case.shape)

    @property
    def byte_count(self) -> int:
        """Bytes a call moves at least."""
        return self.group.operation.byte_count(self.case.shape, self.group.dtype)

    @property
    def what(self) -> str:
        """The case for a reader, e.g. ``matmul at 512 × 512 × 512 in fp32, numpy``."""
        lengths = " × ".join(f"{length:,}" for length in self.case.shape)
        return f"{self.case.operation} at {lengths} in {self.case.dtype}, {self.case.implementation}"


def open_subject(stage: Stage, operation: str, shape: Shape, **own: Any) -> Subject:
    """Return an operation on the stage's device, ready to be timed.

    Args:
        own: other fields of its case; by default it is in fp32, by NumPy on a CPU and by torch on CUDA.

    Raises:
        Unsupported: it does not run there.
    """
    usual = {
        "dtype": "fp32",
        "implementation": {"cpu": "numpy", "cuda": "torch"}[stage.device.kind],
        "device": stage.device.id,
    }
    case = Case(operation, shape, **usual | own)
    group = open_group([case], stage.device, clock=stage.clock, isolation=stage.isolation)
    candidate = group.build(case, shape, group.timed_reference.inputs)
    at_least_s = WARM_UP_S if stage.device.kind == "cpu" else WARM_UP_IDLE_GPU_S
    with stage.isolation.isolate_core():
        call_s, _ = warm_up(candidate, stage.clock, at_least_s)
    return Subject(candidate, group, call_s)


def round_median(subject: Subject, stage: Stage) -> Procedure:
    """Return the right way to time a call: the median of a round, sampled as every result is."""
    sampling = Sampling(subject.candidate, subject.call_s, first_call_s=0.0)
    plan_rounds([sampling])
    if subject.candidate.flush is not None:
        sampling.per_round = 1  # flushes take longest

    def take() -> float:
        before = len(sampling.samples_s)
        sampling.take_round(stage.clock, stage.isolation, stage.progress)
        return median(sampling.samples_s[before:])

    return take


def flag_of(
    subject: Subject,
    samples_s: tuple[float, ...],
    name: FlagName,
    *,
    overhead_s: float | None = None,
    environment: Environment | None = None,
) -> Detection:
    """Return whether a result with these samples would carry the flag `name`, by the rules of every result."""
    measured = MeasuredCase(
        case=subject.case,
        measurement=Measurement(samples_s, first_call_s=samples_s[0]),
        environment=environment or subject.environment,
        operation=subject.group.operation,
        dtype=subject.group.dtype,
        overhead_s=overhead_s,
    )
    for flag in find_flags(measured):
        if flag.name == name:
            return Detection(True, flag.evidence)
    if name == "over_peak" and measured.peak is None:
        return Detection(None, "the peak of this device is unknown, so no rate can be above it")
    return Detection(False, f"a result with these samples does not carry the flag {name}")


def incorrect(accuracy: Accuracy) -> Detection:
    """Return whether an output with this accuracy would end with the status incorrect."""
    return Detection(not accuracy.within, describe(accuracy))


def factor_of(wrong: Accuracy, right: Accuracy) -> Factor | None:
    """Return how many times as large the wrong error is; None where one is not finite, or the right one is zero."""
    if wrong.relative_error is None or not right.relative_error:
        return None
    return Factor(wrong.relative_error / right.relative_error)


def accuracy_of(subject: Subject, reference: AnyReference) -> Accuracy:
    """Return the accuracy of the subject's output after one call, by the check of every result."""
    subject.candidate.poison()
    subject.candidate.run()
    return judge(subject.candidate.output(), reference, subject.case.shape)


def from_pairs(name: str, pairs: _Pairs, subject: Subject, detection: Detection) -> MistakeObservation:
    """Return the observation of the mistake `name`, whose two ways were interleaved.

    Where their factor does not differ significantly from 1, the mistake is not reported as seen.
    """
    factor = pairs.factor
    if factor.is_within_noise:
        interval = format_interval(factor.ci95, "{:.3f}".format)
        agree = f"the two ways agree within the noise on this machine: a factor of {interval}"
        evidence = f"{detection.evidence[:1].upper()}{detection.evidence[1:]}"
        detection = Detection(None, f"{agree}. {evidence}")
    return observed(
        name,
        what=subject.what,
        how="measured",
        wrong=_reading(pairs.wrong),
        right=_reading(pairs.right),
        detection=detection,
        factor=factor,
        rounds=len(pairs.right),
        environment=subject.environment,
    )
