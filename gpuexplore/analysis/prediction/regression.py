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

    def covariance(self, rows: Sequence[Features], columns: Sequence[Features]) -> Matrix:
        """Return what each case of `rows` shares with each of `columns` by this component."""
        shared = np.full((len(rows), len(columns)), self.deviation**2)
        for name in self.same:
            shared *= _names(rows, name)[:, None] == _names(columns, name)[None, :]
        for name, length in self.near:
            shared *= np.exp(-_squares(_numbers(rows, name), _numbers(columns, name)) / (2 * length**2))
        if self.scaled_by is not None:
            shared *= np.outer(_numbers(rows, self.scaled_by), _numbers(columns, self.scaled_by))
        return shared


def _names(cases: Sequence[Features], name: str) -> npt.NDArray[np.str_]:
    return np.array([str(case[name]) for case in cases], dtype=np.str_)


def _numbers(cases: Sequence[Features], name: str) -> Matrix:
    values = [case[name] for case in cases]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _squares(rows: Matrix, columns: Matrix) -> Matrix:
    """Return squared distances: none between two unknown values, infinite between a known and an unknown one."""
    distances: Matrix = (rows[:, None] - columns[None, :]) ** 2
    both = np.isnan(rows)[:, None] & np.isnan(columns)[None, :]
    return np.where(np.isnan(distances), np.where(both, 0.0, np.inf), distances)


def covariance(components: Sequence[Component], rows: Sequence[Features], columns: Sequence[Features]) -> Matrix:
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
    observed: tuple[Features, ...]
    inverse: Matrix
    weights: Matrix

    def estimate(self, case: Features, noise: float) -> Posterior:
        """Return the estimate of one more observation with `noise`, a standard deviation."""
        own = float(covariance(self.components, [case], [case])[0, 0])
        shared = covariance(self.components, [case], self.observed)[0]
        variance = max(own - float(shared @ self.inverse @ shared), 0.0)
        relevance = tuple((shared / own).tolist())
        return Posterior(float(shared @ self.weights), (variance + noise**2) ** 0.5, relevance)


def observe(
    components: tuple[Component, ...], observed: Sequence[Features], values: Sequence[float], noise: Sequence[float]
) -> Process:
    """Return the process that has seen `values` at `observed`, each with its `noise` (a standard deviation)."""
    noises = np.diag(np.square(np.asarray(noise, dtype=np.float64))) if observed else np.zeros((0, 0))
    inverse = np.linalg.inv(covariance(components, observed, observed) + noises)
    return Process(components, tuple(observed), inverse, inverse @ np.asarray(values, dtype=np.float64))
