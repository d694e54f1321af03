"""Times of a case and related ones, the same call under another condition and its parts; and its accuracy."""

from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Literal

from gpuexplore.core.errors import InvalidInput, require
from gpuexplore.core.statistics import check_samples, interval_of_few, median, median_interval, quantile, widened

Alignment = Literal["library", "pages"]
Condition = Literal["cold", "warm", "graph", "library", "pages"]  # includes Alignment
PhaseName = Literal["forward", "backward", "optimizer"]
OMIT_DEFAULT = {"omit_default": True}  # metadata of a field that is only encoded if it differs from its default


class _Timed:
    """The base of a contrast and a phase: samples, seconds per call, or else the reason why there are none."""

    __slots__ = ()
    samples_s: tuple[float, ...]
    reason: str | None

    def __post_init__(self) -> None:
        if bool(self.samples_s) == bool(self.reason):
            raise InvalidInput(f"a {type(self).__name__.lower()} has samples, or else a reason why it has none")
        if self.samples_s:
            check_samples(self.samples_s)

    @property
    def median_s(self) -> float | None:
        """Median seconds per call; None without samples."""
        return median(self.samples_s) if self.samples_s else None

    @property
    def ci95_s(self) -> tuple[float, float] | None:
        """95 % interval of the median, seconds; None under six samples."""
        return median_interval(self.samples_s)


@dataclass(frozen=True, slots=True)
class Contrast(_Timed):
    """The same call, seconds, with the caches in the other state, or replayed from a graph: warm, without launches."""

    condition: Condition
    samples_s: tuple[float, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Phase(_Timed):
    """A part of the call that was timed on its own, seconds per call: forward, backward or optimizer."""

    name: PhaseName
    samples_s: tuple[float, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """Raw samples in seconds per call, in the order of the rounds, and the first call apart.

    The implementations of a group alternate within each round, so ratios can be paired.

    Attributes:
        first_call_s: None is unknown, as in files of other harnesses.
        batch: calls of a sample.
        per_round: samples of a round; 1 in results of earlier versions, whose groups have equally many in each.
        processes: how many of the samples each of several fresh processes took, in that order; empty: one took all.
        between_processes: half width, in natural logarithms, of the interval around the median of many processes that
            covers the median of 95 % of them, as far as this machine is known; None in results of earlier versions.
        between_ratios: the same of what it adds to the ratio to another implementation of its group, for what slows all
            of a process alike leaves ratios as they are.
    """

    samples_s: tuple[float, ...]
    first_call_s: float | None
    batch: int = 1
    contrasts: tuple[Contrast, ...] = ()
    phases: tuple[Phase, ...] = ()
    processes: tuple[int, ...] = ()
    between_processes: float | None = None
    between_ratios: float | None = None
    per_round: int = field(default=1, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        check_samples(self.samples_s)
        if self.processes and (min(self.processes) < 1 or sum(self.processes) != len(self.samples_s)):
            raise InvalidInput.of("samples of each process", self.processes, f"{len(self.samples_s)} together")
        require(self.per_round >= 1, "samples of a round", self.per_round, "whole numbers from 1")

    @property
    def is_single(self) -> bool:
        """True for a single sample, whose spread is unknown."""
        return len(self.samples_s) == 1

    @property
    def median_s(self) -> float:
        """Median seconds per call; of several processes, the median of theirs."""
        return median(self.process_medians_s)

    @property
    def process_medians_s(self) -> tuple[float, ...]:
        """Median seconds per call of each process."""
        return tuple(map(median, self.by_process()))

    def by_process(self) -> tuple[tuple[float, ...], ...]:
        """Return the samples of each process, seconds."""
        ends = tuple(accumulate(self.processes or (len(self.samples_s),)))
        return tuple(self.samples_s[start:end] for start, end in zip((0, *ends), ends, strict=False))

    @property
    def p20_s(self) -> float:
        """20th percentile, seconds."""
        return quantile(self.samples_s, 0.2)

    @property
    def p80_s(self) -> float:
        """80th percentile, seconds."""
        return quantile(self.samples_s, 0.8)

    @property
    def iqr_s(self) -> float:
        """Interquartile range, seconds."""
        return quantile(self.samples_s, 0.75) - quantile(self.samples_s, 0.25)

    @property
    def ci95_s(self) -> tuple[float, float] | None:
        """95 % interval of the median, seconds; None for a single sample.

        It is valid for this run alone unless `covers_processes`.
        """
        if len(self.processes) > 1:
            return interval_of_few(self.process_medians_s)
        within = interval_of_few(self.samples_s)
        if within is None or self.between_processes is None:
            return within
        return widened(within, self.median_s, self.between_processes)

    @property
    def covers_processes(self) -> bool:
        """True if `ci95_s` also covers variation between processes."""
        return len(self.processes) > 1 or self.between_processes is not None

    @property
    def min_s(self) -> float:
        """Fastest sample, seconds: never a headline, it flatters noisy implementations."""
        return min(self.samples_s)


# The error of an output against the reference: by its norm, and at its worst element.


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element of an output that is furthest from the reference, and what rounding explains there.

    Attributes:
        where: its index, e.g. `[17, 4095]`; of several that were summed with random signs, the range they are in.
        value: that of the output.
        expected: that of the reference.
        allowed: the difference that rounding explains.
    """

    where: str
    value: float
    expected: float
    allowed: float

    @property
    def share(self) -> float:
        """The difference over the largest error that rounding explains: above 1, the element is wrong."""
        difference = abs(self.value - self.expected)
        return difference / self.allowed if self.allowed else inf if difference else 0.0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """norm(out - reference) / norm(reference) in float64, what was allowed, and the worst element."""

    relative_error: float | None  # None: the output contained NaN or infinity, so no norm exists
    tolerance: float
    worst: WorstElement | None = None  # None: elements were not compared one by one

    @property
    def share(self) -> float:
        """The error over what is allowed, of the norm or of the worst element, whichever is larger."""
        if self.relative_error is None:
            return inf
        of_norm = self.relative_error / self.tolerance if self.tolerance else inf if self.relative_error else 0.0
        return max(of_norm, self.worst.share if self.worst else 0.0)

    @property
    def within(self) -> bool:
        """True if the error is within the tolerance."""
        return self.share <= 1
