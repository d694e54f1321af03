"""What is timed beside a case: the same call under another condition, and the parts of a call."""

from dataclasses import dataclass
from typing import Literal

from gpuexplore.errors import InvalidInput
from gpuexplore.statistics import check_samples, median, median_interval

Condition = Literal["cold", "warm", "graph"]
PhaseName = Literal["forward", "backward", "optimizer"]


class _Timed:
    """What a contrast and a phase have in common: samples, seconds per call, or else the reason why there are none."""

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
