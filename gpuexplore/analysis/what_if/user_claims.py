"""What a visitor knows from elsewhere: times, promised peaks and prices, and the MFU that follows from each peak."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gpuexplore.analysis.utilization.peak_sources import best_published
from gpuexplore.analysis.what_if.what_if import WhatIf
from gpuexplore.analysis.what_if.workload import Workload
from gpuexplore.devices import accelerator_named, near_names
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Origin, Peak
from gpuexplore.units import read_number

SMALLEST, LARGEST = 1e-12, 1e24  # of seconds, FLOP/s and money
MOST_NAMED = 5  # problems, of the many a pasted text can have
SAME = 2e-3  # published rates have three or four digits


@dataclass(frozen=True, slots=True)
class UserClaim:
    """One time relative to every peak that is named for its dtype.

    Attributes:
        row: the time, and the peak of the arithmetic that ran.
        flop_per_s: what it amounts to.
        promised: the peak the visitor entered, FLOP/s.
        published: the best result anybody published on this device in this dtype; None where it is this very time.
        known_as: that published result where it is this very time, with its conditions.
    """

    row: WhatIf
    flop_per_s: float | None
    promised: float | None
    published: Peak | None
    known_as: Peak | None = None

    @property
    def of_promised(self) -> float | None:
        """Fraction of the promised peak, 0 to 1."""
        return self.flop_per_s / self.promised if self.flop_per_s and self.promised else None

    @property
    def of_peak(self) -> float | None:
        """Fraction of the peak of the arithmetic that ran, 0 to 1."""
        return self.flop_per_s / self.row.peak.flop_per_s if self.flop_per_s and self.row.peak else None

    @property
    def of_published(self) -> float | None:
        """Fraction of the best published rate, 0 to 1."""
        return self.flop_per_s / self.published.flop_per_s if self.flop_per_s and self.published else None


def claims(workload: Workload, rows: Sequence[WhatIf], promised: Mapping[str, float]) -> tuple[UserClaim, ...]:
    """Return a claim for each of `rows` whose time was entered or whose dtype has a promised peak."""
    return tuple(
        _claim(workload, row, promised) for row in rows if row.origin is Origin.ENTERED or row.dtype in promised
    )


def _claim(workload: Workload, row: WhatIf, promised: Mapping[str, float]) -> UserClaim:
    rate = workload.flop_count / row.time.value if row.time else None
    found = best_published(row.device.spec_key, row.dtype)
    same = bool(found and rate and row.origin is Origin.ENTERED and abs(found.flop_per_s / rate - 1) < SAME)
    return UserClaim(
        row,
        rate,
        promised.get(row.dtype),
        published=None if same else found,
        known_as=found if same else None,
    )


def named_numbers(what: str, text: str, names: Collection[str], example: str) -> tuple[dict[str, float], list[str]]:
    """Return the numbers of ``name:number,name=number``, and what is wrong with the first that cannot be used.

    A name that stands there twice keeps its first number, and is named.

    Args:
        what: the name of the control, for a message.
        names: the names that are known.
        example: what a right text looks like.
    """
    found: dict[str, float] = {}
    problems: list[str] = []
    for word in (part.strip() for part in text.split(",") if part.strip()):
        try:
            name, number = _named_number(what, word, names, example)
            if found.setdefault(name, number) != number:
                raise InvalidInput.of(what, word, f"one number for {name}: {found[name]:g} counts")
        except InvalidInput as error:
            problems.append(str(error))
    if len(problems) > MOST_NAMED:
        problems[MOST_NAMED:] = [f"{what}: {len(problems) - MOST_NAMED} more cannot be used"]
    return found, problems


def _named_number(what: str, word: str, names: Collection[str], example: str) -> tuple[str, float]:
    name, _, text = (part.strip() for part in word.rpartition("=" if "=" in word else ":"))
    if name not in names and (row := accelerator_named(name, among=names)):
        name = row.key
    if name not in names:
        listed = ", ".join(names) if len(names) < 12 else "devices of the table by their key"
        raise InvalidInput.of(
            what, word, f"{listed}, each with a number, like {example}{near_names(name, among=names)}"
        )
    number = read_number(text)
    if number is None or not SMALLEST <= number <= LARGEST:
        raise InvalidInput.of(what, word, f"numbers from {SMALLEST:g} to {LARGEST:g}, like {example}")
    return name, number
