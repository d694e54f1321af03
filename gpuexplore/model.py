"""The values everything else passes around: frozen, validated on construction, free of behaviour.

Unknown is None, never 0, NaN or a neighbour's number. SI base units: seconds, bytes, FLOP/s.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Literal

from gpuexplore.errors import InvalidInput
from gpuexplore.hardware import Bandwidth, CacheRoof, Device, Identity, Peak, PeakKind, Unit
from gpuexplore.statistics import check_samples, median, median_interval, quantile
from gpuexplore.timed import Condition, Contrast, Phase, PhaseName

__all__ = [
    "CACHE_MODES",
    "DATA_MODES",
    "DEFAULT_BUDGET_S",
    "LARGEST_BUDGET_S",
    "SCHEMA_VERSION",
    "Accuracy",
    "Bandwidth",
    "CacheMode",
    "CacheRoof",
    "CacheState",
    "Case",
    "Condition",
    "Contrast",
    "DataMode",
    "Device",
    "Environment",
    "Experiment",
    "Flag",
    "FlagName",
    "Identity",
    "Measurement",
    "Options",
    "Peak",
    "PeakKind",
    "Phase",
    "PhaseName",
    "Progress",
    "Result",
    "Run",
    "RunState",
    "Shape",
    "Status",
    "Telemetry",
    "Unit",
]

SCHEMA_VERSION = 1

CacheState = Literal["cold", "warm"]
CacheMode = Literal["cold", "warm", "both"]
DataMode = Literal["normal", "zeros", "ones"]
FlagName = Literal[
    "noisy", "contended", "throttled", "emulated", "over_peak", "launch_bound", "cold", "warm", "truncated", "simulated"
]
CACHE_MODES: tuple[CacheMode, ...] = ("cold", "warm", "both")
DATA_MODES: tuple[DataMode, ...] = ("normal", "zeros", "ones")
DEFAULT_BUDGET_S = 0.1
LARGEST_BUDGET_S = 60.0


class Status(StrEnum):
    """How a case ended. Only OK carries a measurement; every other status carries a reason."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    INCORRECT = "incorrect"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    ERROR = "error"


class RunState(StrEnum):
    """Where a run stands in the queue."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Origin(StrEnum):
    """Where a time comes from: measured on this server, recorded elsewhere, or not measured by gpuexplore at all."""

    LIVE = "live"
    RECORDED = "recorded"
    PUBLISHED = "published"
    ENTERED = "entered"
    PREDICTED = "predicted"

    @property
    def label(self) -> str:
        """What a reader sees."""
        return "measured here" if self is Origin.LIVE else self.value


@dataclass(frozen=True, slots=True)
class Shape:
    """Named axis lengths in the operation's order, e.g. m=512, n=512, k=512."""

    axes: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        for name, length in self.axes:
            if isinstance(length, bool) or not isinstance(length, int) or length < 1:
                raise InvalidInput.of(f"axis {name}", length, "whole numbers from 1")

    @classmethod
    def of(cls, **axes: int) -> "Shape":
        """Return the shape with these axes, in the order given."""
        return cls(tuple(axes.items()))

    def __getitem__(self, name: str) -> int:
        for axis, length in self.axes:
            if axis == name:
                return length
        raise InvalidInput.of("axis", name, (axis for axis, _ in self.axes))

    def __iter__(self) -> Iterator[int]:
        return (length for _, length in self.axes)

    def __str__(self) -> str:
        return ",".join(f"{name}={length}" for name, length in self.axes)

    def scaled(self, factor: float) -> "Shape":
        """Return the shape with every axis multiplied by `factor`, at least 1."""
        return Shape(tuple((name, max(1, int(length * factor))) for name, length in self.axes))


@dataclass(frozen=True, slots=True)
class Options:
    """The conditions of a measurement.

    Attributes:
        cache: `cold` flushes the last-level cache before each call, `warm` does not; None lets the
            device decide (cold on a GPU, warm on a CPU); `both` adds the other state as a contrast.
        data: what the inputs hold; zeros draw less power, and run up to 15 % too fast on a GPU.
        threads: CPU threads of every library; None is one per physical core.
        budget_s: seconds of sampling for one case (see `gpuexplore.measure.timing`).
        block: threads of a block along x, y, z of our CUDA kernels; None is each kernel's own default.
    """

    cache: CacheMode | None = None
    data: DataMode = "normal"
    threads: int | None = None
    budget_s: float = DEFAULT_BUDGET_S
    block: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.cache is not None and self.cache not in CACHE_MODES:
            raise InvalidInput.of("cache", self.cache, CACHE_MODES)
        if self.data not in DATA_MODES:
            raise InvalidInput.of("data", self.data, DATA_MODES)
        if self.threads is not None and not 1 <= self.threads <= 1024:
            raise InvalidInput.of("threads", self.threads, "1 to 1024")
        if not (isfinite(self.budget_s) and 0 < self.budget_s <= LARGEST_BUDGET_S):
            raise InvalidInput.of("budget", self.budget_s, f"above 0, up to {LARGEST_BUDGET_S:g} seconds")


@dataclass(frozen=True, slots=True)
class Case:
    """One point: what is computed, how, in which dtype, where and under which conditions."""

    operation: str
    shape: Shape
    dtype: str
    implementation: str
    device: str
    options: Options = Options()

    @property
    def group(self) -> tuple[str, Shape, str, str, Options]:
        """What the implementations that are sampled in turns have in common."""
        return (self.operation, self.shape, self.dtype, self.device, self.options)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a user asked for: the axes of a sweep over one operation."""

    operation: str
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    implementations: tuple[str, ...]
    devices: tuple[str, ...] = ("cpu",)
    options: Options = Options()

    def __post_init__(self) -> None:
        for what in ("shapes", "dtypes", "implementations", "devices"):
            values = getattr(self, what)
            if not values:
                raise InvalidInput(f"no {what}: give at least one")
            if len(set(values)) != len(values):
                raise InvalidInput(f"{what} repeat: {', '.join(map(str, values))}")

    def cases(self) -> tuple[Case, ...]:
        """Return every case: small shapes first, so that the chart starts at once, and each group in one piece."""
        return tuple(
            Case(self.operation, shape, dtype, implementation, device, self.options)
            for shape in self.shapes
            for device in self.devices
            for dtype in self.dtypes
            for implementation in self.implementations
        )


@dataclass(frozen=True, slots=True)
class Measurement:
    """Raw samples in seconds per call, in the order of the rounds, and the first call apart.

    Sample i of every implementation of a group comes from round i, so ratios can be paired.
    """

    samples_s: tuple[float, ...]
    first_call_s: float
    batch: int = 1
    contrasts: tuple[Contrast, ...] = ()
    phases: tuple[Phase, ...] = ()

    def __post_init__(self) -> None:
        check_samples(self.samples_s)

    @property
    def median_s(self) -> float:
        """Median seconds per call."""
        return median(self.samples_s)

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
        """95 % interval of the median by order statistics, seconds; None under six samples."""
        return median_interval(self.samples_s)

    @property
    def min_s(self) -> float:
        """Fastest sample, seconds: never a headline, it flatters noisy implementations."""
        return min(self.samples_s)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """norm(out - reference) / norm(reference) in float64, and what was allowed."""

    relative_error: float | None  # None: the output held NaN or infinity, so no norm exists
    tolerance: float

    @property
    def within(self) -> bool:
        """Whether the output may be called right."""
        return self.relative_error is not None and self.relative_error <= self.tolerance


@dataclass(frozen=True, slots=True)
class Flag:
    """A condition that a reader must know of, with the evidence for it."""

    name: FlagName
    evidence: str


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The device's state at one moment; None is unknown."""

    clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    foreign_processes: int | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything around a number that could explain it."""

    device: Device
    started_utc: str
    app_version: str
    commit: str | None
    python: str
    platform: str
    libraries: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    governor: str | None = None
    before: Telemetry = Telemetry()
    after: Telemetry = Telemetry()


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case."""

    case: Case
    status: Status
    reason: str | None = None
    measurement: Measurement | None = None
    accuracy: Accuracy | None = None
    flags: tuple[Flag, ...] = ()
    environment: Environment | None = None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.measurement is not None):
            raise InvalidInput(f"a measurement exists with status ok and only then, not with {self.status}")
        if (self.status is Status.OK) == bool(self.reason):
            raise InvalidInput(f"status {self.status} needs {'no' if self.status is Status.OK else 'a'} reason")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: cases with a result, cases in all, and the case being measured."""

    done: int
    total: int
    current: Case | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One experiment on its way through the queue; times are UTC in ISO 8601.

    Attributes:
        supervisor: who measures it, or did last.
        device_s: seconds that devices have worked for it.
    """

    id: str
    owner: str
    experiment: Experiment
    state: RunState
    progress: Progress
    results: tuple[Result, ...] = ()
    reason: str | None = None
    supervisor: str | None = None
    device_s: float = 0.0
    created_utc: str | None = None
    started_utc: str | None = None
    finished_utc: str | None = None

    @property
    def active(self) -> bool:
        """Whether the run still waits or measures."""
        return self.state in (RunState.QUEUED, RunState.RUNNING)
