"""What would confirm a claim: the cases to measure here by the right method, and what has to come out. No result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpuexplore.errors import InvalidInput
from gpuexplore.features.fact_check.analysis.interval import interval_of
from gpuexplore.model import DEFAULT_BUDGET_S, DataMode, Options, Shape

MeasuredQuantity = Literal["time ratio", "rate", "MFU", "relative error"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the cases of a check: by what, on which kind of device, in which dtype."""

    implementation: str
    device: Literal["cpu", "cuda"]
    dtype: str = "fp32"


@dataclass(frozen=True, slots=True)
class Check:
    """A quantity of results that are measured here, and what it has to be.

    Attributes:
        quantity: one of `measured.MEASURED`.
        expected: a figure, like ``about 9`` or ``>1``.
        operation, shape: what every side computes; those of the claim unless others are given.
        sides: the cases; of a time ratio how many times as long the first takes as the second.
        data: what the inputs hold while it is timed; errors are always those of random numbers.
        budget_s: seconds of sampling for one case: more than by default where a call takes long.
    """

    quantity: MeasuredQuantity
    expected: str
    operation: str
    shape: Shape
    sides: tuple[Side, ...]
    data: DataMode = "normal"
    budget_s: float = DEFAULT_BUDGET_S

    def __post_init__(self) -> None:
        if interval_of(self.expected) is None:
            raise InvalidInput.of(f"what {self.quantity} has to be", self.expected, "figures, like >1 or about 9")

    @property
    def options(self) -> Options:
        """The conditions it is measured under."""
        return Options(data=self.data, budget_s=self.budget_s)


def check_of(row: Mapping[str, Any]) -> Check:
    """Return the check that a table of `claims.toml` describes."""
    sides = tuple(Side(**side) for side in row["sides"])
    return Check(**{**row, "shape": Shape.of(**row["shape"]), "sides": sides})
