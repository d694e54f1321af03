"""The subject of a mistake: an implementation, ready to be timed as for any result; and what is observed of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from gpuexplore.core.model import Accuracy, Case, Environment, FlagName, Measurement, Shape
from gpuexplore.core.statistics import median
from gpuexplore.core.units import format_interval
from gpuexplore.features.mistakes.catalog.contract import Detection, Factor, Mistake, MistakeObservation, Stage
from gpuexplore.features.mistakes.catalog.pairs import Pairs, Procedure, reading
from gpuexplore.measure.candidates.candidate import Candidate, wake
from gpuexplore.measure.check.correctness import describe
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import Group, open_group
from gpuexplore.measure.check.in_blocks import AnyReference
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.measure.sample.timing import WARM_UP_IDLE_GPU_S, WARM_UP_S, Sampling, plan_rounds, warm_up

DEFAULT_IMPLEMENTATIONS: Mapping[str, str] = MappingProxyType({"cpu": "numpy", "cuda": "torch"})
WITHIN_NOISE = "the two ways agree within the noise on this machine"


@dataclass(frozen=True, slots=True)
class Subject:
    """A candidate, what its group shares, and about how many seconds one of its calls takes."""

    candidate: Candidate
    group: Group
    call_s: float

    @property
    def case(self) -> Case:
        """What is computed."""
        return self.candidate.case

    @property
    def environment(self) -> Environment:
        """What it is computed with."""
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
        "implementation": DEFAULT_IMPLEMENTATIONS[stage.device.kind],
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


def single_calls(subject: Subject, stage: Stage, count: int) -> list[float]:
    """Return seconds of `count` calls, timed one by one, after the calls that wake threads."""
    stage.isolation.wait_for_idle_threads()
    with stage.isolation.isolate_core():
        wake(subject.candidate, subject.call_s, stage.clock)
        return [subject.candidate.first_call_s(stage.clock) for _ in range(count)]


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


def with_data(subject: Subject, reference: AnyReference) -> Subject:
    """Return the subject computing on other inputs."""
    candidate = subject.group.build(subject.case, subject.case.shape, reference.inputs)
    return replace(subject, candidate=candidate)


def from_pairs(mistake: Mistake, pairs: Pairs, subject: Subject, detection: Detection) -> MistakeObservation:
    """Return the observation of two ways whose samples were interleaved.

    Where their factor does not differ significantly from 1, the mistake is not reported as seen.
    """
    factor = pairs.factor
    if factor.is_within_noise:
        interval = format_interval(factor.ci95, "{:.3f}".format)
        detection = Detection(None, f"{WITHIN_NOISE}: a factor of {interval}. {_sentence(detection.evidence)}")
    return MistakeObservation(
        mistake=mistake.name,
        quantity=mistake.quantity,
        what=subject.what,
        how="measured",
        wrong=reading(pairs.wrong),
        right=reading(pairs.right),
        detection=detection,
        factor=factor,
        rounds=len(pairs.right),
        environment=subject.environment,
    )


def no_sign(mistake: Mistake) -> Detection:
    """Return that nothing can be decided, and why: a mistake that leaves no sign in a result."""
    return Detection(None, mistake.why_none or "")


def _sentence(evidence: str) -> str:
    return f"{evidence[:1].upper()}{evidence[1:]}"
