"""Measuring mistakes made on purpose, as activities: a file for each kind, their texts in `mistakes.toml`.

The web process reads titles and texts. What a mistake computes on is loaded when it is demonstrated.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

from gpuexplore.activity import Activity, of_kind
from gpuexplore.backends import Clock
from gpuexplore.core import (
    UNKNOWN,
    Device,
    Environment,
    InvalidInput,
    Unsupported,
    check_known,
    encode,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_seconds,
    require,
)
from gpuexplore.hardware import check_measured_on, ensure_ceiling
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks

Quantity = Literal["time", "compute rate", "memory rate", "share", "error", "count", "ratio", "sum"]
SignKind = Literal["flag", "diagnosis", "status", "check"]
How = Literal["measured", "emulated", "computed", "published"]

FORMATS: dict[Quantity, Callable[[float], str]] = {
    "time": format_seconds,
    "compute rate": format_flop_per_s,
    "memory rate": format_bytes_per_s,
    "share": format_percent,
    "error": lambda error: f"{error:.2g}",
    "count": lambda count: f"{count:,.0f}",
    "ratio": lambda ratio: f"{ratio:.3f}×",
    "sum": lambda total: f"{total:,.0f}",
}
UNITS: dict[Quantity, str] = {
    "time": "s",
    "compute rate": "FLOP/s",
    "memory rate": "B/s",
    "share": "fraction, 0 to 1",
    "error": "relative error",
    "count": "1",
    "ratio": "×",
    "sum": "1",
}


@dataclass(frozen=True, slots=True)
class _Sign:
    """The sign that detects a mistake.

    Attributes:
        kind: a flag of a result, a diagnosis of one, its status, or a check that no result carries.
        name: e.g. `over_peak`, `too_few_threads` or `incorrect`; a check is put in words.
    """

    kind: SignKind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == "check" else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class WayReading:
    """The value of one way of measuring.

    Attributes:
        value: in the observation's unit; None where it is no number.
        ci95: its 95 % interval, where it was sampled.
        text: what stands there when it is no number, e.g. `inf`.
    """

    value: float | None
    ci95: tuple[float, float] | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Factor:
    """The wrong value over the right one, from pairs of one round each where both were sampled."""

    ratio: float
    ci95: tuple[float, float] | None = None

    @property
    def is_within_noise(self) -> bool:
        """True if the two ways do not differ significantly at 95 %."""
        return self.ci95 is not None and self.ci95[0] <= 1 <= self.ci95[1]


@dataclass(frozen=True, slots=True)
class Detection:
    """The detection of a mistake's sign in its wrong number, with the evidence.

    Attributes:
        found: None where nothing can be decided: no sign exists, or the two ways agree within the noise.
    """

    found: bool | None
    evidence: str


@dataclass(frozen=True, slots=True)
class MistakeObservation:
    """One mistake, made on purpose next to the right way. It is shown; it never becomes a result, so nothing ranks it.

    Attributes:
        mistake: its name.
        what: what was computed, on which sizes, by which library.
        how: where the two values come from.
        factor: None where one of them is no number, or zero.
        rounds: interleaved pairs; 0 where nothing was.
        note: what a reader must know of the values, e.g. that an effect was emulated.
        source: of values that are published.
        environment: of values that were measured or emulated.
    """

    mistake: str
    quantity: Quantity
    what: str
    how: How
    wrong: WayReading
    right: WayReading
    detection: Detection
    factor: Factor | None = None
    rounds: int = 0
    note: str | None = None
    source: str | None = None
    environment: Environment | None = None

    @property
    def origin(self) -> str:
        """The label of `how` for readers."""
        return self.how if self.how in ("computed", "published") else f"{self.how} here"

    def words(self, reading: WayReading) -> str:
        """Return one of its readings for a reader, e.g. ``1.25 ms``."""
        return (reading.text or UNKNOWN) if reading.value is None else self.format(reading.value)

    def format(self, value: float) -> str:
        """Return a value of its quantity for a reader."""
        return FORMATS[self.quantity](value)


@dataclass(frozen=True, slots=True)
class Stage:
    """The environment of a demonstration: the device, the clock, the isolation, and the link to the supervisor."""

    device: Device
    clock: Clock
    isolation: Isolation
    progress: ProgressHooks


Demonstrate = Callable[[Stage], MistakeObservation]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One way to get a wrong number, and how not to: a row of `mistakes.toml`.

    Attributes:
        file: the module of this folder whose DEMONSTRATIONS make it, within about five seconds.
        name: what users type.
        title: a question.
        rows: of the notebooks in which it was made.
        quantity: what the two ways disagree on.
        wrong: what is done wrong, a sentence.
        right: what to do instead, a sentence.
        wrong_code: the wrong way, a few lines of Python.
        right_code: the right way.
        why: what happens in the hardware or in the statistics, two sentences.
        gives_away: the sign it leaves in a result; None where it leaves none.
        why_none: why no sign can give it away; with `gives_away` None and only then.
        live_on: the kinds of devices on which the two values are measured or emulated; empty where they are computed.
        elsewhere: why they are not measured on other kinds of devices.
        instead: the demonstration shown there instead, e.g. of what others published; None: nothing.
    """

    file: str
    name: str
    title: str
    rows: tuple[str, ...]
    quantity: Quantity
    wrong: str
    right: str
    wrong_code: str
    right_code: str
    why: str
    gives_away: _Sign | None = None
    why_none: str | None = None
    live_on: tuple[str, ...] = ()
    elsewhere: str | None = None
    instead: str | None = None

    def __post_init__(self) -> None:
        if (self.gives_away is None) != bool(self.why_none):
            raise InvalidInput(f"{self.name}: expected either what detects it, or why nothing can")

    def observe(self, stage: Stage) -> MistakeObservation:
        """Return the observation on the stage's device, or what stands in for it there.

        Raises:
            Unsupported: it cannot be made on this kind of device, and nothing stands in for it.
        """
        check_measured_on(stage.device.id, f"the mistake {self.name}")
        name = self.name if not self.live_on or stage.device.kind in self.live_on else self.instead
        if name is None:
            raise Unsupported(f"{self.name} is not measured on {stage.device.kind} devices: {self.elsewhere}")
        demonstrations: Any = import_module(f"gpuexplore.features.mistakes.catalog.{self.file}")
        return demonstrations.DEMONSTRATIONS[name](stage)


def _mistake(file: str, row: Mapping[str, Any]) -> Mistake:
    sign = row.get("gives_away")
    lists = {name: tuple(row.get(name, ())) for name in ("rows", "live_on")}
    return Mistake(file, **{**row, **lists, "gives_away": sign and _Sign(**sign)})


def _mistakes() -> Mapping[str, Mistake]:
    table = tomllib.loads((files(__package__) / "mistakes.toml").read_text(encoding="utf-8"))
    return {row["name"]: _mistake(file, row) for file, rows in table.items() for row in rows}


MISTAKES = _mistakes()


def observed(name: str, **about: Any) -> MistakeObservation:
    """Return the observation of the mistake `name`, with its quantity."""
    return MistakeObservation(name, MISTAKES[name].quantity, **about)


def no_sign(name: str) -> Detection:
    """Return that nothing can be decided, and why: a mistake that leaves no sign in a result."""
    return Detection(None, MISTAKES[name].why_none or "")


KIND = "mistake"  # of its activities
EXPECTED_S = 5.0  # that a demonstration takes


def activity_of(name: str, device_id: str = "cpu") -> Activity:
    """Return the work for the queue that makes the mistake `name` on a device.

    Raises:
        Unsupported: mistakes were not made for this kind of device.
    """
    check_measured_on(device_id, f"the mistake {name}")
    return of_kind(KIND, {"name": name}, device=device_id, expected_s=EXPECTED_S)


def mistake_named(name: str) -> Mistake:
    """Return the mistake called `name`.

    Raises:
        InvalidInput: no such mistake.
    """
    check_known("mistake", name, MISTAKES)
    return MISTAKES[name]


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Report the observation of the mistake that `arguments` name, as JSON.

    Args:
        arguments: `name` is that of the mistake.
        device: where it is made; a CPU's peaks are measured first where they are unknown.
        clock: in nanoseconds.
        isolation: of the calls.
        progress: gets a `MistakeObservation` that was encoded; polled between rounds.

    Raises:
        InvalidInput: no such mistake.
        Unsupported: it cannot be made on this kind of device.
        Cancelled: the user asked to stop.
    """
    require("name" in arguments, "mistake", None, MISTAKES)
    mistake = mistake_named(arguments["name"])
    is_known = bool(device.peaks) or not mistake.live_on
    stage = Stage(device if is_known else ensure_ceiling(device), clock, isolation, progress)
    progress.report(encode(mistake.observe(stage)))
