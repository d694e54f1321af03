"""The fitted predictor of GPUs: what it was fitted on, and its estimate of one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import Any

import numpy as np

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.calls import Calls
from gpuexplore.analysis.prediction.gpu.coefficients import Coefficients, package_data
from gpuexplore.analysis.prediction.gpu.facts import Batch, Facts, Indices, Numbers
from gpuexplore.analysis.prediction.gpu.intervals import deviation, regime
from gpuexplore.analysis.prediction.gpu.likeness import Correction, Observed, Places, correction, of_families
from gpuexplore.analysis.prediction.gpu.observations import Seen, observations
from gpuexplore.analysis.prediction.gpu.terms import Terms, terms
from gpuexplore.once import once

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

    def estimate(self, facts: Facts) -> Estimate:
        """Return the estimate of one call."""
        return self.estimate_of(self.judged([facts]), 0)

    def judged(self, rows: Sequence[Facts], kinds: Sequence[Calls] | None = None) -> "Judged":
        """Return what terms, observations and intervals say of calls: many at once take little longer than one.

        Args:
            rows: the calls.
            kinds: of calls, in each of which every row is judged, one after the other; None: in its own.
        """
        batch, per = Batch(rows), len(kinds) if kinds else 1
        each = Batch(rows, kinds) if kinds else batch
        took, families = terms(each, self.coefficients), of_families(batch)
        middle, nearness, corrections = np.log(took.total), np.zeros(len(each)), {}
        for family, chosen in families.items():
            if family in self.observed:
                found = corrections[family] = correction(self.observed[family], Places.of(batch.part(chosen)))
                at = np.array(chosen)[:, None] * per + np.arange(per)
                middle[at] += found.value[:, None]
                nearness[at] = found.nearness[:, None]
        regimes = regime(each, took, nearness, (self.devices, self.architectures))
        places = {
            at * per + kind: (family, place)
            for family, chosen in families.items()
            for place, at in enumerate(chosen)
            for kind in range(per)
        }
        return Judged(each.rows, np.exp(middle), deviation(regimes, self.intervals), took, regimes, places, corrections)

    def estimate_of(self, found: "Judged", at: int) -> Estimate:
        """Return the estimate of one of the calls that were judged."""
        family, place = found.places[at]
        observed = self.observed.get(family)
        near = found.corrections[family].common[place] if observed else np.zeros(0)
        best = _largest(near)
        return Estimate(
            time_s=float(found.times_s[at]),
            deviation=float(found.deviations[at]),
            bound=_bound(found.took, at),
            nearby=tuple(self._nearby(observed, int(each), float(near[each])) for each in best if observed),
            near=int((near >= RELEVANT).sum()),
            measured_device=found.rows[at].device in self.devices,
        )

    def searched_gain(self) -> float:
        """Return what the best shape of a search takes of the time of others, a natural logarithm."""
        return log1p(-self.coefficients.exp("searched"))

    def _nearby(self, observed: Observed, at: int, relevance: float) -> Nearby:
        return Nearby(self.seen[observed.numbers[at]], relevance)


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of many calls.

    Attributes:
        rows: their facts; `calls` is each row's own, also where it is judged in other kinds.
        times_s: seconds of each.
        deviations: standard deviations of their logarithms.
        took: the terms.
        regimes: what decides how sure each is, by name.
        places: the family of each, and its place among those of the family.
        corrections: of each family that was observed.
    """

    rows: tuple[Facts, ...]
    times_s: Numbers
    deviations: Numbers
    took: Terms
    regimes: Mapping[str, Numbers]
    places: Mapping[int, tuple[str, int]]
    corrections: Mapping[str, Correction]


def _largest(values: Numbers) -> Indices:
    """Return the places of the MOST_NEARBY largest values, the largest first."""
    some = np.argpartition(-values, MOST_NEARBY)[:MOST_NEARBY] if len(values) > MOST_NEARBY else np.arange(len(values))
    return some[np.argsort(-values[some])]


def _bound(took: Terms, at: int) -> Bound:
    parts: dict[Bound, float] = {
        "overhead": float(took.launch[at]),
        "compute": float(took.compute[at]),
        "memory": float(took.memory[at]),
    }
    return max(parts, key=lambda name: parts[name])


@once
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
