"""The model of what is expected of a case: before anything like it was measured, and after similar cases were.

Those of a GPU were chosen by hand from the physics: a card of few watts for its peak runs at lower clocks; kernels of
one architecture are alike. A library's calls on a GPU are expected to be as fitted, each as sure as its estimate says:
what was measured on a device moves that device first. Those of a CPU are rounded from what makes an earlier recording
likeliest (the marginal likelihood), which is not the one that ships. `benchmarks/prediction.py` judges them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.calls import Processor

# Gaussian process regression: learned on similar cases, with an uncertainty that grows with the distance from them.
#
# The covariance of two cases is a sum of components, each a variance that cases share when they agree in some
# features, fading with the distance in others. The posterior is the textbook's (C. E. Rasmussen, C. K. I. Williams,
# "Gaussian Processes for Machine Learning", 2006, algorithm 2.1, https://gaussianprocess.org/gpml/).


Features = Mapping[str, str | float | None]
Matrix = np.typing.NDArray[np.float64]
Columns = Mapping[str, np.typing.NDArray[Any]]  # of each feature that components look at, the values of many cases


@dataclass(frozen=True, slots=True)
class _Component:
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

    def columns(self, cases: Sequence[Features]) -> dict[str, np.typing.NDArray[Any]]:
        """Return the features that it looks at: those that agree as hashes, others as numbers; unknown is NaN."""
        numbers = (*(name for name, _ in self.near), *([self.scaled_by] if self.scaled_by else []))
        found = {name: np.array([hash(str(case[name])) for case in cases], dtype=np.int64) for name in self.same}
        for name in numbers:
            values = [case[name] for case in cases]
            found[name] = np.array([np.nan if value is None else value for value in values], np.float64)
        return found

    def covariance(self, rows: Columns, columns: Columns) -> Matrix:
        """Return what each case of `rows` shares with each of `columns` by this component."""
        shared: Matrix = np.full((1, 1), self.deviation**2)
        for name in self.same:
            shared = shared * (rows[name][:, None] == columns[name][None, :])
        for name, length in self.near:
            shared = shared * np.exp(-_squares(rows[name], columns[name]) / (2 * length**2))
        if self.scaled_by is not None:
            shared = shared * np.outer(rows[self.scaled_by], columns[self.scaled_by])
        return shared


def _squares(rows: Matrix, columns: Matrix) -> Matrix:
    """Return squared distances: none between two unknown values, infinite between a known and an unknown one."""
    distances: Matrix = (rows[:, None] - columns[None, :]) ** 2
    both = np.isnan(rows)[:, None] & np.isnan(columns)[None, :]
    return np.where(np.isnan(distances), np.where(both, 0.0, np.inf), distances)


def covariance(components: Sequence[_Component], rows: Sequence[Features], columns: Sequence[Features]) -> Matrix:
    """Return the covariance of each case of `rows` with each of `columns`, (rows, columns)."""
    return np.zeros((len(rows), len(columns))) + _covariance(
        components, _columns(components, rows), _columns(components, columns)
    )


def _covariance(components: Sequence[_Component], rows: Columns, columns: Columns) -> Matrix:
    return sum((component.covariance(rows, columns) for component in components), np.zeros((1, 1)))


def _columns(components: Sequence[_Component], cases: Sequence[Features]) -> Columns:
    """Return each feature of the cases once, however many components and questions ask for it."""
    found: dict[str, np.typing.NDArray[Any]] = {}
    for component in components:
        found |= component.columns(cases)
    return found


@dataclass(frozen=True, slots=True)
class Posterior:
    """The prediction for a case: mean and standard deviation, and the contribution of each observation."""

    mean: float
    deviation: float
    relevance: tuple[float, ...]


Estimator = Callable[[Sequence[Features], float], list[Posterior]]  # each of one more observation, with its noise


def observe(
    components: tuple[_Component, ...], observed: Sequence[Features], values: Sequence[float], noise: Sequence[float]
) -> Estimator:
    """Return what a zero-mean process expects that has seen `values` at `observed`, each with its `noise`."""
    noises = np.diag(np.square(np.asarray(noise, dtype=np.float64))) if observed else np.zeros((0, 0))
    seen = _columns(components, observed)
    inverse = np.linalg.inv(_covariance(components, seen, seen) + noises)
    weights = inverse @ np.asarray(values, dtype=np.float64)

    def estimate(cases: Sequence[Features], noise: float) -> list[Posterior]:
        asked = _columns(components, cases)
        scales = (asked[each.scaled_by] if each.scaled_by else np.ones(len(cases)) for each in components)
        own = sum((each.deviation * scale) ** 2 for each, scale in zip(components, scales, strict=True))
        shared = np.zeros((len(cases), len(observed))) + _covariance(components, asked, seen)
        # no product of BLAS: where others use the cores, its threads spin for 20 ms, to save 3
        explained = np.einsum("ij,ij->i", np.einsum("ij,jk->ik", shared, inverse), shared)
        variances = np.maximum(own - explained, 0.0)
        return list(
            map(
                Posterior,
                (shared @ weights).tolist(),
                np.sqrt(variances + noise**2).tolist(),
                map(tuple, (shared.T / own).T.tolist()),
            )
        )

    return estimate


def _log_evidence(
    components: tuple[_Component, ...], observed: Sequence[Features], values: Sequence[float], noise: Sequence[float]
) -> float:
    """Return the logarithm of how likely the process made `values`, apart from a constant (algorithm 2.1, line 7)."""
    factor = np.linalg.cholesky(covariance(components, observed, observed) + np.diag(np.square(noise)))
    whitened = np.linalg.solve(factor, np.asarray(values, dtype=np.float64))
    return float(-whitened @ whitened / 2 - np.log(np.diag(factor)).sum())


Execution = Literal["native", "narrow", "emulated", "unsupported", "kernel", "library"]


class Regime(NamedTuple):
    """Cases that are expected to reach the same fraction of their ideal.

    Attributes:
        bound: the largest term.
        execution: native or emulated; `narrow` for 16-bit formats on vector units, `kernel` for CUDA kernels of ours,
            `library` for a library's calls on a GPU's own units, whatever bounds them.
    """

    processor: Processor
    bound: Bound
    execution: Execution

    @property
    def efficiency(self) -> float:
        """The fraction of the ideal that is expected before anything like it was seen, 0 to 1."""
        return PRIORS.get(self, CALL_PRIOR)[0]

    @property
    def deviation(self) -> float:
        """The standard deviation of the natural logarithm of that."""
        return PRIORS.get(self, CALL_PRIOR)[1]


PRIORS: Mapping[Regime, tuple[float, float]] = {  # efficiency and deviation
    Regime("gpu", "compute", "narrow"): (0.5, 0.3),  # P100 well, GTX 16 hardly at all
    Regime("gpu", "compute", "emulated"): (0.5, 0.3),
    Regime("gpu", "compute", "kernel"): (0.25, 0.8),
    Regime("gpu", "memory", "emulated"): (0.8, 0.2),
    Regime("gpu", "memory", "kernel"): (0.7, 0.3),
    Regime("cpu", "compute", "native"): (0.75, 0.3),
    Regime("cpu", "compute", "emulated"): (0.3, 1.0),
    Regime("cpu", "memory", "native"): (0.7, 0.4),
    Regime("cpu", "memory", "emulated"): (0.5, 0.6),
    Regime("cpu", "cache", "native"): (0.6, 0.7),
    Regime("cpu", "cache", "emulated"): (0.4, 0.9),
}
LIBRARY = Regime("gpu", "compute", "library")
CALL_PRIOR = (1.0, 0.5)  # the cost of a call: within a factor of 2.3 of the assumed one


_LIBRARY = ("family", "implementation", "dtype")
_REGIME = _Component(1.0, ("regime",), scaled_by="deviation")
_GPU_COMPUTE = (
    _REGIME,
    _Component(0.12, ("vendor",)),
    _Component(0.06, ("architecture",)),
    _Component(0.12, ("rate_class",)),
    _Component(0.08, ("device",)),
    _Component(0.04, ("dtype",)),
    _Component(0.15, (), (("log2_watts_per_peak", 1.0),)),
    _Component(0.15, ("family", "implementation")),
    _Component(0.25, (), (("log2_flops", 6.0),)),
    _Component(0.25, ("unit",)),
)
_OF_ITS_OWN: Mapping[str, tuple[_Component, ...]] = {
    "narrow": (_Component(1.0, ("rate_class",)),),
    "emulated": (_Component(0.4, ("rate_class", "dtype")),),
}
_GPU_OTHERWISE = (_REGIME, _Component(0.1, ("family", "implementation")), _Component(0.1, ("device",)))
_GPU_LIBRARY = (  # shares of the variance of each estimate
    _Component(1.0, ("device", "author"), scaled_by="device_deviation"),
    _Component(0.2, ("device", "author", "dtype"), scaled_by="deviation"),
    _Component(0.2, ("device", "author", "kernels"), scaled_by="deviation"),
    _Component(0.7, ("device", *_LIBRARY), tuple((f"position_{axis}", 2.0) for axis in range(4)), "deviation"),
    _Component(0.6245, ("device", *_LIBRARY, "shape"), scaled_by="deviation"),
)
_CPU = (
    _REGIME,
    _Component(0.3, ("device",)),
    _Component(1.0, ("implementation", "dtype")),
    _Component(0.15, ("implementation", "bound")),
    _Component(0.25, ("family", "bound")),
    _Component(0.6, ("family",), (("log2_bytes", 4.5),)),
    _Component(0.7, _LIBRARY),
    _Component(0.3, _LIBRARY, (("log2_bytes", 3.5),)),
    _Component(0.2, ("device", *_LIBRARY), (("log2_bytes", 0.5),)),
)


class DeviceLikeness(NamedTuple):
    """Differences of a device from its kind, in multiples of the deviations of its estimates.

    Attributes:
        shared: of what all its calls have in common: large under a lower power limit or lower clocks.
        own: of what each kind of call has of its own.
    """

    shared: float = 0.2
    own: float = 1.0

    def of(self, features: Features) -> Features:
        """Return features of a library's call on this device."""
        deviation = float(features["deviation"] or 0.0)
        return {**features, "deviation": self.own * deviation, "device_deviation": self.shared * deviation}


def likeliest(
    observed: Sequence[Features], values: Sequence[float], noise: Sequence[float], shared: float | None = None
) -> DeviceLikeness:
    """Return how a device differs from its kind, by the results of a library's calls on it.

    Most published devices differ little as a whole: the others need evidence, so that a few results move nothing far.

    Args:
        shared: what is known of what all its calls have in common; None: that is worked out too.
    """

    def plausibility(likeness: DeviceLikeness) -> float:
        rarity = 0.7 * log(likeness.shared / USUAL_LIKENESS.shared) + 1.5 * abs(log(likeness.own))
        return _log_evidence(_GPU_LIBRARY, [likeness.of(each) for each in observed], values, noise) - rarity

    of_all = (0.2, 0.6, 2.0) if shared is None else (shared,)
    return max((DeviceLikeness(*pair) for pair in product(of_all, (1.0, 0.7, 1.5, 2.2))), key=plausibility)


USUAL_LIKENESS = DeviceLikeness()


def partition(regime: Regime) -> str:
    """Return the name of the regimes that learn from each other: on a GPU each alone, on a CPU all of them."""
    return regime.processor if regime.processor == "cpu" else "/".join(regime)


def components_of(regime: Regime) -> tuple[_Component, ...]:
    """Return why cases of this regime's partition are alike."""
    if regime.processor == "cpu":
        return _CPU
    if regime == LIBRARY:
        return _GPU_LIBRARY
    if regime.bound == "compute":
        return (*_GPU_COMPUTE, *_OF_ITS_OWN.get(regime.execution, ()))
    return _GPU_OTHERWISE
