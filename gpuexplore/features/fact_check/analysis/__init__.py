"""Claims as notebooks said and printed them, and what follows from that by rules: no verdict is written down anywhere.

`claims.toml` has only what stands in a notebook, which is read here; `judge.py` computes what a figure should have
been, and draws the verdict.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from math import isfinite
from typing import Any, Literal

from gpuexplore.core import DEFAULT_BUDGET_S, DataMode, InvalidInput, NotFound, Options, Shape, once

# A figure as a notebook prints it, and the values that it may stand for.


@dataclass(frozen=True, slots=True)
class Interval:
    """The values that a printed number may stand for, or that a measurement leaves open."""

    low: float
    high: float

    def meets(self, other: "Interval") -> bool:
        """Return whether some value is in both."""
        slack = 1e-14 * max(abs(low) for low in (self.low, other.low, 0.0) if isfinite(low))  # of binary fractions
        return self.low <= other.high + slack and other.low <= self.high + slack


def interval_of(text: str) -> Interval | None:
    """Return what a figure may stand for; None for words.

    A whole number stands for itself; one with decimals or an exponent for all that are rounded to it, ``>1`` for all
    above 1, ``<1`` for all below, ``about 9`` for all up to 1.5 times as large or small.
    """
    if text.startswith(">") and (bound := interval_of(text[1:])):
        return Interval(bound.high, float("inf"))
    if text.startswith("<") and (bound := interval_of(text[1:])):
        return Interval(float("-inf"), bound.low)
    if text.startswith("about ") and (near := interval_of(text.removeprefix("about "))):
        return Interval(near.low / 1.5, near.high * 1.5)
    found = re.fullmatch(r"[-+]?\d+(?:\.(\d+))?(?:e([-+]?\d{1,3}))?", text)
    if found is None or len(text) > 40:
        return None
    value = float(text)
    decimals = found[1] or ""
    exponent = found[2]
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(decimals)) if decimals or exponent else 0.0
    return Interval(value - half, value + half)


MeasuredQuantity = Literal["time ratio", "rate", "MFU", "relative error"]


@dataclass(frozen=True, slots=True)
class CheckSide:
    """One of the cases of a check: by what, on which kind of device, in which dtype."""

    implementation: str
    device: Literal["cpu", "cuda"]
    dtype: str = "fp32"


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A quantity of results that are measured here, and what it has to be.

    Attributes:
        quantity: one of `measured.MEASURED`.
        expected: a figure, like ``about 9`` or ``>1``.
        operation, shape: what every side computes; those of the claim unless others are given.
        sides: the cases; of a time ratio how many times as long the first takes as the second.
        data: values of the inputs while it is timed; errors are always those of random numbers.
        budget_s: seconds of sampling for one case: more than by default where a call takes long.
    """

    quantity: MeasuredQuantity
    expected: str
    operation: str
    shape: Shape
    sides: tuple[CheckSide, ...]
    data: DataMode = "normal"
    budget_s: float = DEFAULT_BUDGET_S

    def __post_init__(self) -> None:
        if interval_of(self.expected) is None:
            raise InvalidInput.of(f"what {self.quantity} has to be", self.expected, "figures, like >1 or about 9")

    @property
    def options(self) -> Options:
        """The conditions it is measured under."""
        return Options(data=self.data, budget_s=self.budget_s)


def _check_of(row: Mapping[str, Any]) -> ClaimCheck:
    """Return the check that a table of `claims.toml` describes."""
    sides = tuple(CheckSide(**side) for side in row["sides"])
    return ClaimCheck(**{**row, "shape": Shape.of(**row["shape"]), "sides": sides})


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """One statement of a claim.

    Attributes:
        quantity: what it is about; one of `judge.QUANTITIES` is computed as well.
        said: in text or comments, empty for nothing.
        printed: in an output, empty for nothing.
        known: what a source outside the notebook has, with `source`.
    """

    quantity: str
    said: str = ""
    printed: str = ""
    known: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a notebook.

    Attributes:
        id: the row of the notebooks, with a word behind it where a row claims several things.
        claim: in a sentence.
        card: one of `cards.CARDS`; empty where no device takes part.
        operation, shape, dtype: of the product or sum that was timed.
        byte_count: that moved, where the notebook moved others than the operation does; 0 otherwise.
        time_s, compared_s: as printed, for one call on the card and for what it was compared with.
        promise: the FLOP/s that the notebook divides by, as printed.
        waited: whether the clock was read after the device was done; None where no time was taken.
        given: what else a quantity is computed from.
        figures: what was said and printed.
        checks: what would confirm it here.
    """

    id: str
    claim: str
    card: str = ""
    operation: str = ""
    shape: Shape | None = None
    dtype: str = "fp32"
    byte_count: int = 0
    time_s: str = ""
    compared_s: str = ""
    promise: str = ""
    waited: bool | None = None
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)
    figures: tuple[ClaimFigure, ...] = ()
    checks: tuple[ClaimCheck, ...] = ()

    def __post_init__(self) -> None:
        for name in ("time_s", "compared_s", "promise"):
            text = getattr(self, name)
            figure = interval_of(text)
            if text and (figure is None or figure.low <= 0):
                raise InvalidInput.of(f"{name} of {self.id}", text, "figures above 0, like 10.4e-6")

    @property
    def row(self) -> str:
        """The row of the notebooks it belongs to."""
        return self.id.partition("-")[0]


@once
def claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of the notebooks."""
    text = (files("gpuexplore.analysis") / "data" / "claims.toml").read_text(encoding="utf-8")
    return tuple(_claim(row) for row in tomllib.loads(text)["claim"])


def claims_of(row: str) -> tuple[Claim, ...]:
    """Return the claims of a row of the notebooks, or the one of that id.

    Raises:
        NotFound: there is none.
    """
    found = tuple(claim for claim in claims() if row.upper() in (claim.row, claim.id.upper()))
    if not found:
        rows = ", ".join(dict.fromkeys(claim.row for claim in claims()))
        raise NotFound(f"row {row[:60]!r}: there are claims of {rows}")
    return found


def _claim(row: Mapping[str, Any]) -> Claim:
    shape = Shape.of(**row["shape"]) if "shape" in row else None
    figures = tuple(ClaimFigure(**figure) for figure in row.get("figures", ()))
    try:
        work = {name: row[name] for name in ("operation", "shape") if name in row}
        checks = tuple(_check_of(work | check) for check in row.get("checks", ()))
        return Claim(**{**row, "shape": shape, "figures": figures, "checks": checks})
    except TypeError as error:
        raise InvalidInput(f"claims.toml, {row.get('id')}: {error}") from error
