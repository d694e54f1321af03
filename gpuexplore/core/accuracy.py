"""The distance of an output from the reference: by its norm, and at its worst element."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element of an output that is furthest from the reference, and what rounding explains there.

    Attributes:
        where: its index, e.g. `[17, 4095]`; of several that were summed with random signs, the range they are in.
        value: that of the output.
        expected: that of the reference.
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

    relative_error: float | None  # None: the output contained NaN or infinity, so no norm exists
    tolerance: float
    worst: WorstElement | None = None  # None: elements were not compared one by one

    @property
    def share(self) -> float:
        """The error over what is allowed, of the norm or of the worst element, whichever is larger."""
        if self.relative_error is None:
            return inf
        of_norm = self.relative_error / self.tolerance if self.tolerance else inf if self.relative_error else 0.0
        return max(of_norm, self.worst.share if self.worst else 0.0)

    @property
    def within(self) -> bool:
        """Whether the output may be called right."""
        return self.share <= 1
