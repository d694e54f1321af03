"""Gaussian process regression: what was learned on similar cases, with an uncertainty that grows away from them.

The covariance of two cases is a sum of components, each a variance that cases share when they agree in some
features, fading with the distance in others. The posterior is the textbook's (C. E. Rasmussen, C. K. I. Williams,
"Gaussian Processes for Machine Learning", 2006, algorithm 2.1, https://gaussianprocess.org/gpml/).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Features = Mapping[str, str | float | None]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Component:
    """One reason why two cases are alike.

    Attributes:
        deviation: how much it moves a case, one standard deviation in natural logarithms.
        same: features both cases must agree in.
        near: features in which likeness fades, each with its length scale; unknown is near to unknown only.
        scaled_by: a feature that multiplies the deviation of each case.
    """

    deviation: float
    same: tuple[str, ...] = ()
    near: tuple[tuple[str, float], ...] = ()
    scaled_by: str | None = None

    def covariance(self, rows: "Cases", columns: "Cases") -> Matrix:
        """Return what each case of `rows` shares with each of `columns` by this component."""
        shared = np.full((len(rows), len(columns)), self.deviation**2)
        for name in self.same:
            shared *= rows.names(name)[:, None] == columns.names(name)[None, :]
        for name, length in self.near:
            shared *= np.exp(-_squares(rows.numbers(name), columns.numbers(name)) / (2 * length**2))
        if self.scaled_by is not None:
            shared *= np.outer(rows.numbers(self.scaled_by), columns.numbers(self.scaled_by))
        return shared


class Cases:
    """Cases of which each feature is put into an array once, however many components and questions ask for it."""

    def __init__(self, cases: Sequence[Features]) -> None:
        self._cases = tuple(cases)
        self._names: dict[str, npt.NDArray[np.str_]] = {}
        self._numbers: dict[str, Matrix] = {}

    def __len__(self) -> int:
        return len(self._cases)

    def names(self, feature: str) -> npt.NDArray[np.str_]:
        """Return a feature of each case as text."""
        if feature not in self._names:
            self._names[feature] = np.array([str(case[feature]) for case in self._cases], dtype=np.str_)
        return self._names[feature]

    def numbers(self, feature: str) -> Matrix:
        """Return a feature of each case as a number; unknown is NaN."""
        if feature not in self._numbers:
            values = [case[feature] for case in self._cases]
            self._numbers[feature] = np.array([np.nan if value is None else value for value in values], np.float64)
        return self._numbers[feature]


def _squares(rows: Matrix, columns: Matrix) -> Matrix:
    """Return squared distances: none between two unknown values, infinite between a known and an unknown one."""
    distances: Matrix = (rows[:, None] - columns[None, :]) ** 2
    both = np.isnan(rows)[:, None] & np.isnan(columns)[None, :]
    return np.where(np.isnan(distances), np.where(both, 0.0, np.inf), distances)


def covariance(components: Sequence[Component], rows: Cases, columns: Cases) -> Matrix:
    """Return the covariance of each case of `rows` with each of `columns`, (rows, columns)."""
    return sum((component.covariance(rows, columns) for component in components), np.zeros((len(rows), len(columns))))


@dataclass(frozen=True, slots=True)
class Posterior:
    """What the process expects of a case: mean and standard deviation, and how much each observation told of it."""

    mean: float
    deviation: float
    relevance: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """Observations of a zero-mean process, ready to be asked."""

    components: tuple[Component, ...]
    observed: Cases
    inverse: Matrix
    weights: Matrix

    def estimate(self, case: Features, noise: float) -> Posterior:
        """Return the estimate of one more observation with `noise`, a standard deviation."""
        asked = Cases([case])
        own = float(covariance(self.components, asked, asked)[0, 0])
        shared = covariance(self.components, asked, self.observed)[0]
        variance = max(own - float(shared @ self.inverse @ shared), 0.0)
        relevance = tuple((shared / own).tolist())
        return Posterior(float(shared @ self.weights), (variance + noise**2) ** 0.5, relevance)


def observe(
    components: tuple[Component, ...], observed: Sequence[Features], values: Sequence[float], noise: Sequence[float]
) -> Process:
    """Return the process that has seen `values` at `observed`, each with its `noise` (a standard deviation)."""
    noises = np.diag(np.square(np.asarray(noise, dtype=np.float64))) if observed else np.zeros((0, 0))
    seen = Cases(observed)
    inverse = np.linalg.inv(covariance(components, seen, seen) + noises)
    return Process(components, seen, inverse, inverse @ np.asarray(values, dtype=np.float64))
