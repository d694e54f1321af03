"""How far an output is from the reference: by its norm, and at its worst element."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element of an output that is furthest from the reference, beside what rounding explains there.

    Attributes:
        where: its index, e.g. `[17, 4095]`; of several that were summed with random signs, the range they are in.
        value: what the output holds.
        expected: what the reference holds.
        allowed: the difference that rounding explains.
    """

    where: str
    value: float
    expected: float
    allowed: float

    @property
    def share(self) -> float:
        """The difference over what rounding explains: above 1, the element is wrong."""
        difference = abs(self.value - self.expected)
        return difference / self.allowed if self.allowed else inf if difference else 0.0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """norm(out - reference) / norm(reference) in float64, what was allowed, and the worst element."""

    relative_error: float | None  # None: the output held NaN or infinity, so no norm exists
    tolerance: float
    worst: WorstElement | None = None  # None: elements were not compared one by one

    @property
    def within(self) -> bool:
        """Whether the output may be called right."""
        if self.relative_error is None or self.relative_error > self.tolerance:
            return False
        return self.worst is None or self.worst.share <= 1
