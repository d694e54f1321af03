"""The values of an analysis: what results are compared with, what else is known, and what follows from them.

`gpuexplore.analysis.run.analyze` makes them, once for a run; charts, tables, files and sentences only read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from gpuexplore.analysis.verdict import Estimate, Verdict, Words, compare
from gpuexplore.core import (
    Bandwidth,
    Case,
    Device,
    Flag,
    FlagName,
    InvalidInput,
    Measurement,
    Origin,
    Peak,
    PeakKind,
    Result,
    Shape,
)
from gpuexplore.hardware.identity import device_key
from gpuexplore.operations import Implementation, Operation, operation_named

P = TypeVar("P", Peak, Bandwidth)
Bound = Literal["compute", "memory", "cache", "overhead"]
DiagnosisKind = Literal[
    "not_measured",
    "over_peak",
    "over_bandwidth",
    "fragile",
    "extra_threads",
    "emulated",
    "slow_blas",
    "launch_bound",
    "compute_bound",
    "memory_bound",
    "cache_bound",
    "below_limits",
    "one_thread",
    "no_peak",
    "wave_tail",
    "too_few_threads",
    "tf32",
    "transfer_dominates",
    "throttled",
    "contended",
    "drifted",
    "noisy",
]
Severity = Literal["explains", "doubt", "wrong"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The baseline and the peak that results are compared with.

    Attributes:
        baseline: an implementation or a dtype; None is the first implementation, in the operation's order.
        peak_kind: the kind of peak of MFU and bandwidth utilization; None is the default: a custom peak where there is
            one, else the device's.
    """

    baseline: str | None = None
    peak_kind: PeakKind | None = None


@dataclass(frozen=True, slots=True)
class CustomPeaks:
    """The peaks a user entered for one device."""

    compute: tuple[Peak, ...] = ()
    bandwidth: Bandwidth | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Facts from outside the results of a run.

    Attributes:
        custom_peaks: what a user entered, by the key of the device (`gpuexplore.hardware.identity.device_key`).
        earlier: measured results, of these devices or others, that a measured ceiling may be taken from.
        recorded: results of a recording that are shown with those of the run.
        origin: where the results of the run come from.
    """

    custom_peaks: Mapping[str, CustomPeaks] = field(default_factory=dict, hash=False)
    earlier: tuple[Result, ...] = ()
    recorded: tuple[Result, ...] = ()
    origin: Origin = Origin.LIVE

    def custom(self, device: Device | None) -> CustomPeaks:
        """Return what the user entered for `device`."""
        return self.custom_peaks.get(device_key(device), CustomPeaks()) if device else CustomPeaks()


@dataclass(frozen=True, slots=True)
class PeakChoice(Generic[P]):
    """One peak that a result can be compared with.

    Attributes:
        kind: what it is; `datasheet` where not even the default one is known.
        peak: None is unknown.
        reason: why it is unknown, in a sentence without its full stop.
    """

    kind: PeakKind
    peak: P | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.peak is None) != bool(self.reason):
            raise InvalidInput("a PeakChoice has either a peak or the reason why it is unknown")


@dataclass(frozen=True, slots=True)
class Speedup:
    """Baseline time / this time; above 1 is faster.

    Attributes:
        baseline: what it is compared with, for a reader.
        estimate: the ratio of the medians with its interval.
        paired: whether both were sampled in the same rounds.
        covers_processes: whether the interval also covers what changes from one process to the next.
        by_round: the median of the ratios round by round, where it disagrees with `ratio`; None where it does not.
    """

    baseline: str
    estimate: Estimate
    paired: bool
    covers_processes: bool = False
    by_round: float | None = None

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        return self.estimate.value

    @property
    def ci95(self) -> tuple[float, float] | None:
        """95 % interval of the ratio; None is unknown."""
        return self.estimate.interval

    @property
    def verdict(self) -> Verdict:
        """The conclusion: significantly faster, significantly slower, or inconclusive."""
        return compare(self.estimate, 1.0, words=Words(below="slower", above="faster", question="which is faster"))


@dataclass(frozen=True, slots=True)
class MachineNote:
    """Causes of variation on a device throughout a run: stated once, and not for each result.

    Attributes:
        device: its id.
        sentence: by how much times and ratios vary, and why.
        details: the evidence, one line each.
        usual: the size that a flag usually has in the run, by name, of those that most results carry; None is unknown.
    """

    device: str
    sentence: str
    details: tuple[str, ...] = ()
    usual: Mapping[FlagName, float | None] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing a result shows.

    Attributes:
        kind: which rule found it.
        sentence: what it means and what to do, in plain words.
        evidence: the figures it rests on.
        severity: `explains` the time, casts `doubt` on it, or says what is `wrong`.
    """

    kind: DiagnosisKind
    sentence: str
    evidence: str
    severity: Severity = "explains"


@dataclass(frozen=True, slots=True)
class Summary:
    """A headline and details on results.

    Attributes:
        headline: one sentence.
        details: further sentences, the most important first.
    """

    headline: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.headline, *self.details))


@dataclass(frozen=True, slots=True)
class ImplementationLimits:
    """The limits of an implementation on its device, by the threads and the stores it uses; None is unknown.

    Attributes:
        peak: of its arithmetic and its mix of instructions.
        memory: bandwidth of the memory for its mix of reads and writes.
        serving: of what delivers its data: the smallest cache that they fit in, else memory.
        one_thread: whether these are of one of several cores.
    """

    peak: Peak | None
    memory: Bandwidth | None
    serving: Bandwidth | None
    one_thread: bool = False


@dataclass(frozen=True, slots=True)
class AnalyzedResult:
    """One result and what follows from it; None is unknown or not applicable.

    Attributes:
        label: how a sentence names it, e.g. ``torch in bf16``, with its device where there are several.
        device_label: how labels call its device: the id of one of this server, the name of a recorded one.
        flop_count: FLOPs of one call.
        byte_count: bytes one call moves at least.
        peak: the compute peak it is compared with.
        bandwidth: the memory bandwidth it is compared with.
        mfu: fraction of `peak` that was reached, 0 to 1; above 1 is above the peak.
        bandwidth_utilization: fraction of `bandwidth`; None when a cache delivered the data.
        above_peak, above_bandwidth: why the fraction is above 1, where it is.
        default_peak, default_bandwidth: those of its device, whatever it is compared with.
        limits: what its implementation can reach of them, which bounds it.
        cache_resident_reason: why memory bandwidth does not bound it: its data stay in a cache.
        bound: what limits it at best.
        speedup: over the baseline of the run.
        time: seconds per call, with what flags and processes make of its interval.
        siblings: results of the run of the same shape, device and options.
        elsewhere: results of the run of the same shape, dtype and options on other devices.
        flags: those to be shown with it: what the rest of the run carries alike is said once, of the machine.
        diagnoses: what explains it or casts doubt on it, the most important first.
    """

    result: Result
    origin: Origin
    label: str
    device_label: str
    flop_count: int
    byte_count: int
    flop_per_s: float | None
    bytes_per_s: float | None
    peak: PeakChoice[Peak]
    bandwidth: PeakChoice[Bandwidth]
    mfu: float | None
    bandwidth_utilization: float | None
    above_peak: str | None
    above_bandwidth: str | None
    default_peak: Peak | None
    default_bandwidth: Bandwidth | None
    limits: ImplementationLimits
    cache_resident_reason: str | None
    bound: Bound | None
    speedup: Speedup | None
    time: Estimate | None
    siblings: tuple[Result, ...] = field(default=(), repr=False)
    elsewhere: tuple[Result, ...] = field(default=(), repr=False)
    flags: tuple[Flag, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def case(self) -> Case:
        """The measured case."""
        return self.result.case

    @property
    def operation(self) -> Operation:
        """The operation that was computed."""
        return operation_named(self.case.operation)

    @property
    def implementation(self) -> Implementation:
        """The way it was computed."""
        return self.operation.implementation_named(self.case.implementation)

    @property
    def device(self) -> Device | None:
        """The device that computed it, as it was then; None when the result does not name it."""
        return self.result.environment.device if self.result.environment else None

    @property
    def measurement(self) -> Measurement | None:
        """The samples; None without any."""
        return self.result.measurement

    @property
    def median_s(self) -> float | None:
        """Median seconds per call; None without a measurement."""
        return self.measurement.median_s if self.measurement else None

    @property
    def ci95_s(self) -> tuple[float, float] | None:
        """95 % interval of the median, seconds, widened by what disturbed it; None without one, or of one sample."""
        return self.time.interval if self.time and self.measurement and self.measurement.ci95_s else None

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in FLOP/byte, with each array moved once."""
        return self.flop_count / self.byte_count

    @property
    def energy_j(self) -> float | None:
        """Joules of a call: the power that the driver stated as sampling ended, times the median; None is unknown."""
        power_w = self.result.environment.after.power_w if self.result.environment else None
        return power_w * self.median_s if power_w and self.median_s else None

    @property
    def default_mfu(self) -> float | None:
        """Fraction of the default peak that was reached."""
        return self.flop_per_s / self.default_peak.flop_per_s if self.flop_per_s and self.default_peak else None

    @property
    def default_bandwidth_utilization(self) -> float | None:
        """Fraction of the default bandwidth that was reached; None when a cache delivered the data."""
        if self.bytes_per_s is None or self.default_bandwidth is None or self.cache_resident_reason:
            return None
        return self.bytes_per_s / self.default_bandwidth.bytes_per_s

    @property
    def marks(self) -> tuple[str, ...]:
        """The names of its `flags`, of a first pass, and of rounds whose speedup disagrees with the medians'."""
        names = (*(flag.name for flag in self.flags), *(("first_pass",) if self.result.provisional else ()))
        return (*names, *(("rounds_disagree",) if self.speedup and self.speedup.by_round else ()))

    def share_of(self, amount: float, most: float) -> Estimate | None:
        """Return the fraction of `most` per second that it reached, with `amount` per call; None without a time."""
        return self.time.inverse(amount / most, "fraction") if self.time and amount else None

    @property
    def compute_fraction(self) -> Estimate | None:
        """Fraction of the peak that its implementation can reach; None where one of both is unknown."""
        return self.share_of(self.flop_count, self.limits.peak.flop_per_s) if self.limits.peak else None

    @property
    def serving_fraction(self) -> Estimate | None:
        """Fraction of what memory, or the cache that its data fit in, can deliver; None where one is unknown."""
        return self.share_of(self.byte_count, self.limits.serving.bytes_per_s) if self.limits.serving else None

    def flag(self, name: FlagName) -> Flag | None:
        """Return the flag called `name`; None when the result does not carry it."""
        return next((flag for flag in self.result.flags if flag.name == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class RunAnalysis:
    """The analysis of one run's results; equality is identity, so that it can be a key of caches.

    Attributes:
        results: every result, in the order given.
        recorded: those of the recording shown with the run, analyzed the same way.
        comparison: what they are compared with, the baseline named; None only where nothing was asked for.
        context: what else was known.
        largest_shape: the measured shape with the most work; None without a measurement.
        at_largest_shape: the measured results there, the fastest first.
        ties: those of `at_largest_shape` that cannot be separated from the fastest, itself first.
        machines: how much times vary on each device, where that is known.
        summary: what the run says in sentences.
    """

    results: tuple[AnalyzedResult, ...]
    recorded: tuple[AnalyzedResult, ...]
    comparison: Comparison
    context: Context
    largest_shape: Shape | None
    at_largest_shape: tuple[AnalyzedResult, ...]
    ties: tuple[AnalyzedResult, ...]
    machines: tuple[MachineNote, ...] = ()
    summary: Summary = Summary("")

    @property
    def shown(self) -> tuple[AnalyzedResult, ...]:
        """Every result that charts draw."""
        return (*self.results, *self.recorded)

    @property
    def fastest(self) -> AnalyzedResult | None:
        """The result with the smallest median at the largest measured shape."""
        return next(iter(self.at_largest_shape), None)

    @property
    def headline_result(self) -> AnalyzedResult | None:
        """The result that is worth explaining first: the fastest, else the first there is."""
        return self.fastest or next(iter(self.results), None)
