"""A claim as its notebook has it: shapes, printed figures, the card, and how the time was taken. No verdict."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.features.fact_check.analysis.check import ClaimCheck, check_of, interval_of
from gpuexplore.model import Shape
from gpuexplore.once import once


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """One statement of a claim.

    Attributes:
        quantity: what it is about; one of `quantities.QUANTITIES` is computed as well.
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
    """What a notebook claims.

    Attributes:
        id: the row of the notebooks, with a word behind it where a row claims several things.
        claim: in a sentence.
        card: one of `cards.CARDS`; empty where no device takes part.
        operation, shape, dtype: of the product or sum that was timed.
        byte_count: that moved, where the notebook moved others than the operation does; 0 otherwise.
        time_s, beside_s: as printed, for one call on the card and for what it was compared with.
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
    beside_s: str = ""
    promise: str = ""
    waited: bool | None = None
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)
    figures: tuple[ClaimFigure, ...] = ()
    checks: tuple[ClaimCheck, ...] = ()

    def __post_init__(self) -> None:
        for name in ("time_s", "beside_s", "promise"):
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
        checks = tuple(check_of(work | check) for check in row.get("checks", ()))
        return Claim(**{**row, "shape": shape, "figures": figures, "checks": checks})
    except TypeError as error:
        raise InvalidInput(f"claims.toml, {row.get('id')}: {error}") from error
