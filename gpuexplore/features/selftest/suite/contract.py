"""The findings of a check, and the report of all of them: as text, and as one HTML file that can be sent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from jinja2 import Environment

from gpuexplore.core import (
    UNKNOWN,
    Device,
    Result,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_seconds,
    format_si,
)

FULL_S = 600.0
QUICK_S = 120.0
FRACTION = "fraction"
INTERRUPTED = "interrupted"


class CheckVerdict(StrEnum):
    """The verdict of a check."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckFigure:
    """A quantity that a check found.

    Attributes:
        name: of what.
        value: in SI base units, or a text; None is unknown.
        unit: of the value: a key of the formats, e.g. `s`; empty: a count, or a text.
        note: what to compare it with.
    """

    name: str
    value: float | str | None
    unit: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """The value as people read it."""
        if isinstance(self.value, str):
            return self.value
        formats: Mapping[str, Callable[[float | None], str]] = {
            "s": format_seconds,
            "B": format_bytes,
            "B/s": format_bytes_per_s,
            "FLOP/s": format_flop_per_s,
            "Hz": lambda value: format_si(value, "Hz"),
            "W": lambda value: format_si(value, "W"),
            FRACTION: format_percent,
            "": lambda value: UNKNOWN if value is None else f"{value:g}",
        }
        return formats[self.unit](self.value)


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The findings of a check.

    Attributes:
        said: sentences: why it failed or was skipped, else what to know.
        figures: what it rests on.
    """

    verdict: CheckVerdict
    said: tuple[str, ...] = ()
    figures: tuple[CheckFigure, ...] = ()


def judged(
    problems: list[str], figures: list[CheckFigure], notes: tuple[str, ...] = (), *, untried: str = ""
) -> CheckFinding:
    """Return a finding that fails where there are problems; `notes` are said in either case.

    Args:
        untried: what was not checked, and why: without it nothing has passed.
    """
    verdict = CheckVerdict.FAIL if problems else CheckVerdict.SKIPPED if untried else CheckVerdict.PASS
    return CheckFinding(verdict, (*problems, *filter(None, [untried]), *notes), tuple(figures))


def ended(result: Result) -> str:
    """Return how a case ended, and why, where it did not end well."""
    case = result.case
    return f"{case.operation} {case.shape} {case.dtype} {case.implementation} ended {result.status}: {result.reason}"


def skipped(reason: str, figures: tuple[CheckFigure, ...] = ()) -> CheckFinding:
    """Return the finding of what was not checked."""
    return CheckFinding(CheckVerdict.SKIPPED, (reason,), figures)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The outcome and the duration of one check."""

    name: str
    title: str
    verdict: CheckVerdict
    said: tuple[str, ...]
    figures: tuple[CheckFigure, ...]
    lasted_s: float


@dataclass(frozen=True, slots=True)
class SelftestReport:
    """The report of a self-test.

    Attributes:
        stand_in: what stood in for the device, so that its figures are not taken for measured ones; empty: nothing.
        no_gpu: why no GPU was tested; empty: one was.
    """

    started_utc: str
    app_version: str
    commit: str | None
    command: str
    device: Device
    is_quick: bool
    lasted_s: float
    outcomes: tuple[CheckOutcome, ...]
    stand_in: str = ""
    no_gpu: str = ""
    schema_version: int = 1

    @property
    def has_failed(self) -> bool:
        """True if a check failed."""
        return any(outcome.verdict is CheckVerdict.FAIL for outcome in self.outcomes)

    @property
    def is_interrupted(self) -> bool:
        """True if it ended before all checks had run."""
        return any(INTERRUPTED in outcome.said for outcome in self.outcomes)

    def count(self, verdict: CheckVerdict) -> int:
        """Return how many checks ended so."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        counts = ", ".join(f"{self.count(verdict)} {words}" for verdict, words in _WORDS.items())
        after = f", {INTERRUPTED} after" if self.is_interrupted else ", in"
        return f"{self.device.title}: {counts}{after} {format_seconds(self.lasted_s)}"


_WORDS = {CheckVerdict.PASS: "passed", CheckVerdict.FAIL: "failed", CheckVerdict.SKIPPED: "skipped"}
Payload = Mapping[str, Any]


# A report as one self-contained HTML file, which can be sent.


def report_html(report: SelftestReport) -> str:
    """Return the report as an HTML document."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["seconds"] = format_seconds
    template = environment.from_string(Path(__file__).with_name("report.html.jinja").read_text(encoding="utf-8"))
    return template.render(report=report, style=Path(__file__).with_name("report.css").read_text(encoding="utf-8"))
