"""What a rule of the diagnosis is asked and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpuexplore.analysis.roofline.bound import Bound, bound, feed
from gpuexplore.analysis.run.evidence import name_of
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.analysis.utilization.utilization import (
    applicable_peak,
    bandwidth_share,
    compute_share,
    device_of,
    known_bandwidth,
)
from gpuexplore.model import Bandwidth, Device, Flag, FlagName, Peak, Result
from gpuexplore.operations import operation_named
from gpuexplore.operations.contract import Implementation, Operation

Kind = Literal[
    "not_measured",
    "over_peak",
    "over_bandwidth",
    "emulated",
    "slow_blas",
    "launch_bound",
    "compute_bound",
    "memory_bound",
    "cache_bound",
    "no_peak",
    "wave_tail",
    "too_few_threads",
    "tf32",
    "transfer_dominates",
    "throttled",
    "contended",
    "noisy",
]
Severity = Literal["explains", "doubt", "wrong"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing a result shows.

    Attributes:
        kind: which rule found it.
        sentence: what it means and what to do, in plain words.
        evidence: the figures it rests on.
        severity: `explains` the time, casts `doubt` on it, or says what is `wrong`.
    """

    kind: Kind
    sentence: str
    evidence: str
    severity: Severity = "explains"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is diagnosed, and what is known beside it.

    Attributes:
        others: results of the same run; the diagnosed one may be among them.
        against: what it is held against, beside the usual peaks.
    """

    result: Result
    others: tuple[Result, ...] = ()
    against: Against = USUAL

    @property
    def name(self) -> str:
        """How a sentence names the result."""
        return name_of(self.result, self.others)

    @property
    def operation(self) -> Operation:
        """The operation that was computed."""
        return operation_named(self.result.case.operation)

    @property
    def implementation(self) -> Implementation:
        """The way it was computed."""
        return self.operation.implementation_named(self.result.case.implementation)

    @property
    def device(self) -> Device | None:
        """Where it was computed; None when nobody recorded it."""
        return device_of(self.result)

    @property
    def median_s(self) -> float | None:
        """Median seconds per call; None without a measurement."""
        return self.result.measurement.median_s if self.result.measurement else None

    @property
    def peak(self) -> Peak | None:
        """The compute peak that bounds it; None when it is unknown."""
        return applicable_peak(self.result, self.against.own_peaks)

    @property
    def bandwidth(self) -> Bandwidth | None:
        """The memory bandwidth that bounds it; None when it is unknown."""
        return known_bandwidth(self.result, self.against.own_bandwidth)

    @property
    def feed(self) -> Bandwidth | None:
        """The bandwidth of what delivers its data, a cache or memory; None when it is unknown."""
        return feed(self.result, self.against.own_bandwidth)

    @property
    def share(self) -> float | None:
        """Share of that peak, of one."""
        return compute_share(self.result, self.peak)

    @property
    def bandwidth_share(self) -> float | None:
        """Share of that bandwidth, of one; None where a cache delivered the data."""
        return bandwidth_share(self.result, self.bandwidth)

    @property
    def bound(self) -> Bound | None:
        """Which side of the roofline it is on."""
        return bound(self.result, self.against.own_peaks, self.against.own_bandwidth)

    def flag(self, name: FlagName) -> Flag | None:
        """Return the flag called `name`; None when the result does not carry it."""
        return next((one for one in self.result.flags if one.name == name), None)


Rule = Callable[[Subject], Diagnosis | None]
