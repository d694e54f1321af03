"""Gaussian process regression: what was learned on similar cases, with an uncertainty that grows away from them.

The covariance of two cases is a sum of components, each a variance that cases share when they agree in some
features, fading with the distance in others. The posterior is the textbook's (C. E. Rasmussen, C. K. I. Williams,
"Gaussian Processes for Machine Learning", 2006, algorithm 2.1, https://gaussianprocess.org/gpml/).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
import numpy.typing as npt

Features = Mapping[str, str | float | None]


@dataclass(frozen=True, slots=True)
class Component:
    """One reason why two cases are alike.

    Attributes:
        deviation: how much it moves a case, one standard deviation in natural logarithms.
        same: features both cases must agree in.
        near: features in which likeness fades, each with its length scale.
    """

    deviation: float
    same: tuple[str, ...] = ()
    near: tuple[tuple[str, float], ...] = ()

    def covariance(self, this: Features, other: Features) -> float:
        """Return what two cases share by this component."""
        if any(this[name] != other[name] for name in self.same):
            return 0.0
        return self.deviation**2 * exp(-sum(_distance(this[name], other[name], by) for name, by in self.near) / 2)


def _distance(this: str | float | None, other: str | float | None, length: float) -> float:
    """Return the squared distance in lengths; unknown is at no distance from unknown, and far from everything else."""
    if isinstance(this, float) and isinstance(other, float):
        return ((this - other) / length) ** 2
    return 0.0 if this == other else float("inf")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the process expects of a case: mean and standard deviation, and how much each observation told of it."""

    mean: float
    deviation: float
    relevance: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """Observations of a zero-mean process, ready to be asked."""

    components: tuple[Component, ...]
    observed: tuple[Features, ...]
    inverse: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]

    def estimate(self, case: Features, noise: float) -> Estimate:
        """Return the estimate of one more observation with `noise`, a standard deviation."""
        own = covariance(self.components, case, case)
        shared = np.array([covariance(self.components, case, one) for one in self.observed])
        variance = own - float(shared @ self.inverse @ shared) if len(shared) else own
        relevance = tuple(float(one) / own for one in shared)
        return Estimate(float(shared @ self.weights), (max(variance, 0.0) + noise**2) ** 0.5, relevance)


def covariance(components: Sequence[Component], this: Features, other: Features) -> float:
    """Return the covariance of two cases."""
    return sum(one.covariance(this, other) for one in components)


def observe(
    components: tuple[Component, ...], observed: Sequence[Features], values: Sequence[float], noise: Sequence[float]
) -> Process:
    """Return the process that has seen `values` at `observed`, each with its `noise` (a standard deviation)."""
    count = len(observed)
    matrix = np.diag(np.square(np.asarray(noise, dtype=np.float64))) if count else np.zeros((0, 0))
    for row in range(count):
        for column in range(row + 1):
            shared = covariance(components, observed[row], observed[column])
            matrix[row, column] += shared
            if row != column:
                matrix[column, row] += shared
    inverse = np.linalg.inv(matrix)
    return Process(components, tuple(observed), inverse, inverse @ np.asarray(values, dtype=np.float64))
