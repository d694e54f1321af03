"""The values everything else passes around: frozen, validated on construction, free of behaviour.

Unknown is None, never 0, NaN or a neighbour's number. SI base units: seconds, bytes, FLOP/s.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Literal

from gpuexplore.core.errors import InvalidInput, require
from gpuexplore.core.hardware import Bandwidth, CacheRoof, Device, Identity, Peak, PeakKind, ThreadRoofs, Unit
from gpuexplore.core.timed import OMIT_DEFAULT, Accuracy, Alignment, Contrast, Measurement, Phase, WorstElement
from gpuexplore.core.typed_text import LONGEST_REASON, readable

__all__ = [
    "ALIGNMENTS",
    "CACHE_MODES",
    "DATA_MODES",
    "DEFAULT_BUDGET_S",
    "LARGEST_BUDGET_S",
    "LAYOUTS",
    "MOST_PROCESSES",
    "SCHEMA_VERSION",
    "Accuracy",
    "Bandwidth",
    "CacheMode",
    "CacheRoof",
    "CacheState",
    "Case",
    "Contrast",
    "DataMode",
    "Device",
    "Environment",
    "Experiment",
    "Flag",
    "FlagName",
    "Identity",
    "Layout",
    "Measurement",
    "Options",
    "Peak",
    "PeakKind",
    "Phase",
    "Progress",
    "Result",
    "Run",
    "RunState",
    "RunSummary",
    "Shape",
    "Status",
    "Telemetry",
    "ThreadRoofs",
    "Unit",
    "WorstElement",
]

SCHEMA_VERSION = 1
CacheState = Literal["cold", "warm"]
CacheMode = Literal["cold", "warm", "both"]
DataMode = Literal["normal", "zeros", "ones"]
Layout = Literal["NN", "NT", "TN"]
Quality = Literal["clean", "noisy", "contended"]
FlagName = Literal[
    "noisy",
    "contended",
    "contention_unknown",
    "drifted",
    "throttled",
    "emulated",
    "over_peak",
    "over_physical_peak",
    "launch_bound",
    "leaks",
    "cold",
    "warm",
    "truncated",
    "fragile",
    "extra_threads",
    "simulated",
    "one_sample",
]
DISTURBED: frozenset[FlagName] = frozenset({"contended", "throttled", "drifted"})  # from outside: not relied on
DOUBTFUL: frozenset[FlagName] = DISTURBED | {"noisy", "over_peak", "over_physical_peak", "one_sample"}
CACHE_MODES: tuple[CacheMode, ...] = ("cold", "warm", "both")
DATA_MODES: tuple[DataMode, ...] = ("normal", "zeros", "ones")
LAYOUTS: tuple[Layout, ...] = ("NN", "NT", "TN")
ALIGNMENTS: tuple[Alignment, ...] = ("library", "pages")
ONE_SAMPLE = "1 sample: no interval"
UNREADABLE = "the reason is not printable"
DEFAULT_BUDGET_S = 0.1
LARGEST_BUDGET_S = 60.0
MOST_PROCESSES = 60


class Status(StrEnum):
    """The outcome of a case. Only OK carries a measurement; every other status carries a reason."""

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
    """The state of a run; `store/run_states.py` has the table of who changes it, and into what."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Origin(StrEnum):
    """The origin of a time: measured on this server, recorded elsewhere, or not measured by gpuexplore at all."""

    LIVE = "live"
    RECORDED = "recorded"
    PUBLISHED = "published"
    ENTERED = "entered"
    PREDICTED = "predicted"

    @property
    def label(self) -> str:
        """Its name on pages."""
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
        data: values of the inputs; zeros draw less power, and run up to 15 % too fast on a GPU.
        threads: CPU threads of every library; None is one per physical core.
        budget_s: seconds of sampling for one case (see `gpuexplore.measure.sample.timing`).
        block: threads of a block along x, y, z of our CUDA kernels; None is each kernel's own default.
        repeat: in how many fresh processes the case is measured; one: in whichever there is.
        layout: of the matrices of a product, as BLAS names it: N lies in memory by rows, T by columns.
        align: where a CPU's arrays lie: as their `library` allocates, or in huge `pages`, on boundaries of 2 MiB.
    """

    cache: CacheMode | None = None
    data: DataMode = "normal"
    threads: int | None = None
    budget_s: float = DEFAULT_BUDGET_S
    block: tuple[int, ...] | None = None
    repeat: int = 1
    layout: Layout = field(default="NN", metadata=OMIT_DEFAULT)
    align: Alignment = field(default="library", metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        named = {"cache": CACHE_MODES, "data": DATA_MODES, "layout": LAYOUTS, "align": ALIGNMENTS}
        for name, accepted in named.items():
            if (value := getattr(self, name)) not in accepted and not (name == "cache" and value is None):
                raise InvalidInput.of(name, value, accepted)
        if self.threads is not None and not 1 <= self.threads <= 1024:
            raise InvalidInput.of("threads", self.threads, "1 to 1024")
        require(
            isfinite(self.budget_s) and 0 < self.budget_s <= LARGEST_BUDGET_S,
            "budget",
            self.budget_s,
            f"above 0, up to {LARGEST_BUDGET_S:g} seconds",
        )
        require(1 <= self.repeat <= MOST_PROCESSES, "fresh processes", self.repeat, f"1 to {MOST_PROCESSES}")


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
        """The properties shared by implementations that are sampled in the same rounds."""
        return (self.operation, self.shape, self.dtype, self.device, self.options)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A user's request: the axes of a sweep over one operation."""

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
                raise InvalidInput.repeated(what, values)

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
class Flag:
    """A condition that affects how a result is read, with its evidence.

    Attributes:
        size: of what it is evidence of; None is unknown. `noisy`: interquartile range over median; `contended`: share
            of the CPU that others had; `drifted`, `throttled`: by how much longer calls took for it, as a fraction.
    """

    name: FlagName
    evidence: str
    size: float | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The device's state at one moment; None is unknown.

    Attributes:
        probe_flop_per_s: of a loop of multiply-adds on one core of a CPU, which takes about a millisecond.
    """

    clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    foreign_processes: int | None = None
    probe_flop_per_s: float | None = None


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
    """The result of one case.

    Attributes:
        seed: of the random numbers it computed with; another in each run.
        provisional: of a first pass: few samples, and a later result of the case replaces it.
    """

    case: Case
    status: Status
    reason: str | None = None
    measurement: Measurement | None = None
    accuracy: Accuracy | None = None
    flags: tuple[Flag, ...] = ()
    environment: Environment | None = None
    seed: int | None = None
    provisional: bool = field(default=False, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        if self.provisional and self.status is not Status.OK:
            raise InvalidInput(f"only a result with status ok is provisional, not one with {self.status}")
        if (self.status is Status.OK) != (self.measurement is not None):
            raise InvalidInput(f"a measurement exists with status ok and only then, not with {self.status}")
        if (self.status is Status.OK) == bool(self.reason):
            raise InvalidInput(f"status {self.status} needs {'no' if self.status is Status.OK else 'a'} reason")
        single = [Flag("one_sample", ONE_SAMPLE)] if self.measurement and self.measurement.is_single else []
        object.__setattr__(self, "flags", (*(flag for flag in self.flags if flag.name != "one_sample"), *single))
        if self.reason is not None:  # the message of any failure, which may not even be text
            object.__setattr__(self, "reason", readable(self.reason, LONGEST_REASON) or UNREADABLE)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        done: cases with a final result.
        total: cases in all.
        current: the case being measured.
        provisional: cases of which only a first pass is known.
    """

    done: int
    total: int
    current: Case | None = None
    provisional: int = 0

    @property
    def measured(self) -> int:
        """Cases with a result of either kind."""
        return self.done + self.provisional

    @property
    def share(self) -> float:
        """Fraction of the work that is done, 0 to 1: a first pass of a case counts as half of it."""
        return (self.done + self.provisional / 2) / self.total

    def __str__(self) -> str:
        refining = f", refining {self.provisional}" if self.provisional and self.measured == self.total else ""
        return f"{self.measured} of {self.total} measured{refining}"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run that has ended, as lists show it; None is unknown.

    Attributes:
        best: the result with the highest rate, e.g. ``torch in fp32, 384 × 384 × 384``.
        rate: of that result, in `unit`.
        unit: ``FLOP/s``, or ``B/s`` where memory bounds the operation.
        share: of its peak that the rate reaches, as a fraction.
        peak: what that peak is, for a reader.
        quality: how far its times can be trusted.
        why: the evidence for that, in a sentence.
    """

    best: str | None = None
    rate: float | None = None
    unit: str | None = None
    share: float | None = None
    peak: str | None = None
    quality: Quality | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One experiment on its way through the queue; times are UTC in ISO 8601.

    Attributes:
        supervisor: who measures it, or did last.
        device_s: seconds that devices have worked for it.
        title: what it is called; empty for one that is not in the store.
        note: its owner's words on it.
        tags: its owner's, in the order of the alphabet.
        origin: where it was measured, when not by this server or on its machine.
        summary: what a list says of it; None before it has ended.
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
    title: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    origin: str | None = None
    summary: RunSummary | None = None

    @property
    def active(self) -> bool:
        """True while the run is queued or measures."""
        return self.state in (RunState.QUEUED, RunState.RUNNING)
