"""The fitted predictor of GPUs: what it was fitted on, and its estimate of one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, log1p
from typing import Any

import numpy as np

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.gpu.coefficients import Coefficients, package_data
from gpuexplore.analysis.prediction.gpu.facts import Batch, Facts, Numbers
from gpuexplore.analysis.prediction.gpu.intervals import deviation, regime
from gpuexplore.analysis.prediction.gpu.likeness import Observed, Places, correction, of_families
from gpuexplore.analysis.prediction.gpu.observations import Seen, observations
from gpuexplore.analysis.prediction.gpu.terms import Terms, terms

MOST_NEARBY = 5
RELEVANT = 0.35  # share of a call's variance that an observation shares


@dataclass(frozen=True, slots=True)
class Nearby:
    """A measurement that a prediction rests on.

    Attributes:
        seen: what was measured.
        relevance: what it has in common with the call asked for, 0 to 1.
    """

    seen: Seen
    relevance: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The time of one call.

    Attributes:
        time_s: seconds, the median of what is expected.
        deviation: standard deviation of its natural logarithm.
        bound: the term that decides.
        nearby: the measurements that have most in common with it, the nearest first.
        near: how many have much in common with it.
        measured_device: whether the device is among those that others measured.
    """

    time_s: float
    deviation: float
    bound: Bound
    nearby: tuple[Nearby, ...]
    near: int
    measured_device: bool


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Coefficients, observations with their weights, and what decides how sure an estimate is."""

    coefficients: Coefficients
    observed: Mapping[str, Observed]
    intervals: Mapping[str, float]
    seen: tuple[Seen, ...]
    devices: frozenset[str]
    architectures: frozenset[str]

    def estimates(self, batch: Batch) -> tuple[Numbers, Numbers, Terms, Numbers]:
        """Return of many calls: logarithms of seconds, their deviations, the terms and how near observations are."""
        took = terms(batch, self.coefficients)
        middle, nearness = np.log(took.total), np.zeros(len(batch))
        for family, chosen in of_families(batch).items():
            if family in self.observed:
                found = correction(self.observed[family], Places.of(batch.part(chosen)))
                middle[chosen] += found.value
                nearness[chosen] = found.nearness
        regimes = regime(batch, took, nearness, (self.devices, self.architectures))
        return middle, deviation(regimes, self.intervals), took, nearness

    def estimate(self, facts: Facts) -> Estimate:
        """Return the estimate of one call."""
        batch = Batch([facts])
        took = terms(batch, self.coefficients)
        middle, near = log(took.total[0]), np.zeros(0)
        observed = self.observed.get(facts.family)
        if observed is not None:
            found = correction(observed, Places.of(batch))
            middle, near = middle + float(found.value[0]), found.common[0]
        nearness = np.array([near.max(initial=0.0)])
        regimes = regime(batch, took, nearness, (self.devices, self.architectures))
        best = np.argsort(-near)[:MOST_NEARBY]
        return Estimate(
            time_s=exp(middle),
            deviation=float(deviation(regimes, self.intervals)[0]),
            bound=_bound(took),
            nearby=tuple(self._nearby(observed, int(at), float(near[at])) for at in best if observed),
            near=int((near >= RELEVANT).sum()),
            measured_device=facts.device in self.devices,
        )

    def searched_gain(self) -> float:
        """Return what the best shape of a search takes of the time of others, a natural logarithm."""
        return log1p(-self.coefficients.exp("searched"))

    def _nearby(self, observed: Observed, at: int, relevance: float) -> Nearby:
        return Nearby(self.seen[observed.numbers[at]], relevance)


def _bound(took: Terms) -> Bound:
    parts: dict[Bound, float] = {
        "overhead": float(took.launch[0]),
        "compute": float(took.compute[0]),
        "memory": float(took.memory[0]),
    }
    return max(parts, key=lambda name: parts[name])


@cache
def fitted() -> Fitted:
    """Return the predictor that ships, as `scripts/fit_prediction.py` fitted it."""
    data, seen = package_data(), observations()
    return from_data(data, seen)


def from_data(data: Mapping[str, Any], seen: Sequence[Seen]) -> Fitted:
    """Return the predictor from what was written of it, and the observations that it was fitted on."""
    batch = Batch([each.facts for each in seen])
    weighed = np.array(data["weights"], dtype=np.float64)
    observed = {
        family: Observed(Places.of(batch.part(chosen)), weighed[chosen], tuple(chosen))
        for family, chosen in of_families(batch).items()
    }
    return made(Coefficients(data["coefficients"]), observed, data["intervals"], seen)


def made(
    coefficients: Coefficients, observed: Mapping[str, Observed], intervals: Mapping[str, float], seen: Sequence[Seen]
) -> Fitted:
    """Return the predictor of its parts."""
    devices = frozenset(each.facts.device for each in seen)
    architectures = frozenset(each.facts.architecture for each in seen)
    return Fitted(coefficients, observed, intervals, tuple(seen), devices, architectures)
