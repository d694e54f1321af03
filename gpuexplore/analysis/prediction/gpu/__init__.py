"""The fitted predictor of GPUs: what it was fitted on, and its estimate of one call.

Similarity of calls on GPUs beyond the terms: a correction learned on published measurements near a call.

A Gaussian process over what measured times are longer than the terms say, in natural logarithms, for each family of
kernels in each kind of units.
Calls are alike when their shapes are, more so on one device, on one architecture, or under as many watts per FLOP/s.
How calls follow one another makes no difference, so that a launch never makes one faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, log1p
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.calls import USUAL, Calls, Conditions, arithmetic, conditions_of
from gpuexplore.analysis.prediction.gpu.facts import (
    Batch,
    GpuCall,
    Indices,
    Numbers,
    facts_of,
    is_of_library,
    published_call,
)
from gpuexplore.analysis.prediction.gpu.terms import Coefficients, Terms, exponential, package_data, terms
from gpuexplore.analysis.utilization.peak_sources import NOTED, PUBLISHED, NotedResult, PublishedResult
from gpuexplore.core import Case, Device, once
from gpuexplore.hardware import table_device
from gpuexplore.recorded.published import published_measurements

NOISE = 0.07  # from one call to the next, and from one team to the other

# Standard deviations that calls share twice: fading slowly with the distance of their shapes, and fast.
SHAPE = 0.12
ARCHITECTURE = 0.1  # of one architecture
HARDWARE = 0.05  # of like hardware
DEVICE = 0.08  # on one device: fading slowly, and at any shape
TEAM = 0.08  # measured by one team: fading slowly, and at any shape
VARIANCE = 2 * (SHAPE**2 + ARCHITECTURE**2 + HARDWARE**2 + DEVICE**2 + TEAM**2)  # of one call


def _shared(rows: Batch, columns: Batch) -> Numbers:
    """Return what each call of `rows` has in common with each of `columns`: a covariance, (rows, columns)."""
    apart = _squares(rows.positions, columns.positions)
    slow = np.exp(apart / (-2 * 4.0**2))  # a length scale of a shape's logarithms to base 2
    fast = np.exp(apart / (-2 * 1.2**2))
    named = [(row.watts_per_teraflop, row.multiprocessors, row.architecture, row.device, row.team) for row in rows.rows]
    places = {name: at for at, name in enumerate(dict.fromkeys(named))}
    few = rows.part([named.index(name) for name in places])  # many calls, few devices
    # a length scale of watts per TFLOP/s and of multiprocessors, both to base 2
    hardware = np.exp(_squares(few.hardware, columns.hardware) / (-2 * 0.7**2))
    architecture, device = (few.codes(name)[:, None] == columns.codes(name) for name in ("architecture", "device"))
    team = few.codes("team")[:, None] == np.where(columns.codes("team") == hash(""), -1, columns.codes("team"))
    alike = SHAPE**2 + ARCHITECTURE**2 * architecture + HARDWARE**2 * hardware
    same = DEVICE**2 * device + TEAM**2 * team
    kind = [places[name] for name in named]
    return np.asarray(alike[kind] * (slow + fast) + same[kind] * (slow + 1), dtype=np.float64)


def _weights(calls: Batch, residuals: Numbers, noise: Numbers) -> Numbers:
    """Return what each observation weighs in the correction of others; far outliers count for less.

    Args:
        residuals: how much longer each took than the terms say, natural logarithms.
        noise: of each, a standard deviation.
    """
    covariance = _shared(calls, calls)
    variance = noise**2
    found: Numbers = np.zeros(len(residuals))
    for _ in range(3):
        found = np.linalg.solve(covariance + np.diag(variance), residuals).astype(np.float64)
        variance = noise**2 * np.maximum(1, np.abs(variance * found) / (2 * noise))
    return found


def _squares(rows: Numbers, columns: Numbers) -> Numbers:
    """Return squared distances, (rows, columns)."""
    found: Numbers = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1) - 2 * (rows @ columns.T)
    return np.maximum(found, 0.0)


def _of_families(batch: Batch) -> dict[str, list[int]]:
    """Return which calls of a batch belong to each family of kernels in each kind of units."""
    found: dict[str, list[int]] = {}
    for at, row in enumerate(batch.rows):
        found.setdefault(f"{row.family}/{row.rate}", []).append(at)
    return found


def observe(batch: Batch, residuals: Sequence[float] | Numbers, noise: Numbers) -> Numbers:
    """Return what each observation weighs among those of its family."""
    values = np.asarray(residuals, dtype=np.float64)
    found = np.zeros(len(batch))
    for chosen in _of_families(batch).values():
        found[chosen] = _weights(batch.part(chosen), values[chosen], noise[chosen])
    return found


SeenOrigin = Literal["measured", "published", "noted"]


@dataclass(frozen=True, slots=True)
class CallObservation:
    """One measurement of others.

    Attributes:
        origin: a published measurement, the best published product of a device, or a rate in the notes of the table.
        time_s: what it took, seconds.
        noise: standard deviation of the logarithm of that.
        searched: whether its shape is the best of a search.
        url: where it was published.
    """

    origin: SeenOrigin
    case: Case
    device: Device
    facts: GpuCall
    time_s: float
    noise: float
    searched: bool
    url: str


@once
def observations() -> tuple[CallObservation, ...]:
    """Return everything of others that ships: published products are queued, at the best shape of a search."""
    measured = (
        _observed("measured", published_call(row), (row.time_s, 0.0), conditions_of(row), url=row.url)
        for row in published_measurements()
    )
    rows: Sequence[PublishedResult | NotedResult] = (*PUBLISHED, *NOTED)
    stated = (
        _observed(row.origin, (row.case, table_device(row.spec_key)), (row.time_s, row.spread), url=row.source)
        for row in rows
    )
    return tuple(seen for seen in (*measured, *stated) if seen is not None)


def _observed(
    origin: SeenOrigin,
    call: tuple[Case, Device],
    took: tuple[float, float],
    conditions: Conditions = USUAL,
    *,
    url: str,
) -> CallObservation | None:
    """Return a measurement of others, which took so long with that spread; None where it is no library's call."""
    units = arithmetic(*call)
    if not is_of_library(*call, units):
        return None
    facts = facts_of(*call, units, conditions)
    time_s, spread = took
    return CallObservation(origin, *call, facts, time_s, hypot(NOISE, spread), origin == "published", url)


# Uncertainty of a time on a GPU: a standard deviation from the errors of predictions for left-out devices.
#
# It depends on the kind of kernel, on how calls follow one another, on the share of the launch, on how short the call
# is, and on what was measured: on the device, on its architecture, by this team, at shapes like it.

SETTING = ("team", "device")  # how a team measures on a device is known where it published other shapes
KNOWN_BY = ("device", "architecture", "vendor", "team")  # fields of a call; one that no observation has is new
DURATIONS_S = MappingProxyType({"5us": 5e-6, "12us": 1.2e-5, "40us": 4e-5, "300us": 3e-4})  # between them: a mixture


def _regime(batch: Batch, took: Terms, nearness: Numbers, seen: Mapping[str, frozenset[str]]) -> dict[str, Numbers]:
    """Return what decides how sure each call is, by name.

    Args:
        seen: what observations are of, by field of KNOWN_BY, and their settings.
    """
    found = {"constant": np.ones(len(batch))}
    for name in ("family", "calls", "rate"):
        for at, member in enumerate(batch.members(name)):
            found[f"{name}:{member}"] = (batch.member_of(name) == at).astype(np.float64)
    settings = np.array([setting in seen["setting"] for setting in batch.members(*SETTING)])[batch.member_of(*SETTING)]
    for at, member in enumerate(batch.members("team")):
        if member:
            found[f"team:{member}"] = ((batch.member_of("team") == at) & settings).astype(np.float64)
    found["launch"] = np.clip(took.launch / took.total, 0, 1)
    middles = np.log(list(DURATIONS_S.values()))
    for at, name in enumerate(DURATIONS_S):
        found[f"lasts:{name}"] = np.interp(np.log(took.total), middles, np.eye(len(middles))[at])
    found["misaligned"] = batch.numbers("misaligned")
    found["far"] = 1 - nearness
    for name in KNOWN_BY:
        found[f"new_{name}"] = np.array([float(member not in seen[name]) for member in batch.members(name)])[
            batch.member_of(name)
        ]
    return found


def deviation(regimes: Mapping[str, Numbers], known: Mapping[str, float]) -> Numbers:
    """Return the standard deviation of the logarithm of each time."""
    logarithm = sum((known.get(name, 0.0) * values for name, values in regimes.items()), np.zeros(1))
    of_unknown_vendor = 0.6  # Apple's GPUs, which no observation is of, took twice as long as other vendors' would
    least = np.maximum(0.02, of_unknown_vendor * regimes.get("new_vendor", np.zeros(1)))
    found: Numbers = np.clip(np.exp(logarithm), least, 1.2)
    return found


RELEVANT = 0.35  # share of a call's variance that an observation shares


@dataclass(frozen=True, slots=True)
class Nearest:
    """A measurement of others that a prediction rests on.

    Attributes:
        case: what was measured; its device is the key of a row of the table.
        device: where, as readers know it.
        time_s: what it took, seconds.
        relevance: what it has in common with the case asked for, 0 to 1.
        url: where it was published.
    """

    case: Case
    device: str
    time_s: float
    relevance: float
    url: str


@dataclass(frozen=True, slots=True)
class CallEstimate:
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
    nearby: tuple[Nearest, ...]
    near: int
    measured_device: bool


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Coefficients, observations with their weights, and what decides how sure an estimate is.

    Attributes:
        observed: the calls that were seen of each family.
        weights: of everything that was seen, in the correction of others of its family.
        known: what was seen, by field of KNOWN_BY, and in which settings.
    """

    coefficients: Coefficients
    observed: Mapping[str, Batch]
    weights: Numbers
    intervals: Mapping[str, float]
    seen: tuple[CallObservation, ...]
    known: Mapping[str, frozenset[str]]

    def estimate(self, facts: GpuCall) -> CallEstimate:
        """Return the estimate of one call."""
        return self.estimate_of(self.judged([facts]), 0)

    def judged(self, rows: Sequence[GpuCall], kinds: Sequence[Calls] | None = None) -> "BatchEstimate":
        """Return what terms, observations and intervals say of calls: many at once take little longer than one.

        Args:
            rows: the calls.
            kinds: of calls, in each of which every row is judged, one after the other; None: in its own.
        """
        batch = Batch(rows)
        per = len(kinds) if kinds else 1
        each = Batch(rows, kinds) if kinds else batch
        took = terms(each, self.coefficients)
        families = _of_families(batch)
        middle = np.log(took.total)
        nearness = np.zeros(len(each))
        common: dict[str, Numbers] = {}
        for family, chosen in families.items():
            if family in self.observed:
                covariance = _shared(batch.part(chosen), self.observed[family])
                common[family] = covariance
                at = np.array(chosen)[:, None] * per + np.arange(per)
                middle[at] += (covariance @ self.weights[list(self.observed[family].chosen)])[:, None]
                nearness[at] = (covariance.max(axis=1, initial=0.0) / VARIANCE)[:, None]
        regimes = _regime(each, took, nearness, self.known)
        positions = {
            at * per + kind: (family, index)
            for family, chosen in families.items()
            for index, at in enumerate(chosen)
            for kind in range(per)
        }
        return BatchEstimate(
            each.rows, np.exp(middle), deviation(regimes, self.intervals), took, regimes, positions, common
        )

    def estimate_of(self, found: "BatchEstimate", at: int, *, explained: bool = True) -> CallEstimate:
        """Return the estimate of one of the calls that were judged, with the measurements near to it if `explained`."""
        family, index = found.positions[at]
        observed = self.observed.get(family) if explained else None
        near = found.common[family][index] / VARIANCE if observed is not None else np.zeros(0)
        parts: dict[Bound, float] = {
            "overhead": float(found.took.launch[at]),
            "compute": float(found.took.compute[at]),
            "memory": float(found.took.memory[at]),
        }
        return CallEstimate(
            time_s=float(found.times_s[at]),
            deviation=float(found.deviations[at]),
            bound=max(parts, key=lambda name: parts[name]),
            nearby=tuple(self._nearest(observed.chosen[each], float(near[each])) for each in _largest(near))
            if observed
            else (),
            near=int((near >= RELEVANT).sum()),
            measured_device=found.rows[at].device in self.known["device"],
        )

    def searched_gain(self) -> float:
        """Return what the best shape of a search takes of the time of others, a natural logarithm."""
        return log1p(-exponential(self.coefficients, "searched"))

    def _nearest(self, number: int, relevance: float) -> Nearest:
        seen = self.seen[number]
        return Nearest(seen.case, seen.device.title, seen.time_s, relevance, seen.url)


@dataclass(frozen=True, slots=True)
class BatchEstimate:
    """Estimates of many calls.

    Attributes:
        rows: their facts; `calls` is each row's own, also where it is judged in other kinds.
        times_s: seconds of each.
        deviations: standard deviations of their logarithms.
        took: the terms.
        regimes: what decides how sure each is, by name.
        positions: the family of each, and its index among those of the family.
        common: what calls of a family that was observed have in common with each of its observations, as `shared`.
    """

    rows: tuple[GpuCall, ...]
    times_s: Numbers
    deviations: Numbers
    took: Terms
    regimes: Mapping[str, Numbers]
    positions: Mapping[int, tuple[str, int]]
    common: Mapping[str, Numbers]


def _largest(values: Numbers) -> Indices:
    """Return the indices of the MOST_NEARBY largest values, the largest first."""
    most = 5
    some = np.argpartition(-values, most)[:most] if len(values) > most else np.arange(len(values))
    return some[np.argsort(-values[some])]


@once
def fitted() -> Fitted:
    """Return the predictor that ships, as `scripts/fit_prediction.py` fitted it."""
    return _from_data(package_data(), observations())


def _from_data(data: Mapping[str, Any], seen: Sequence[CallObservation]) -> Fitted:
    """Return the predictor from what was written of it, and the observations that it was fitted on."""
    return made(data["coefficients"], np.array(data["weights"], dtype=np.float64), data["intervals"], seen)


def made(
    coefficients: Coefficients, weights: Numbers, intervals: Mapping[str, float], seen: Sequence[CallObservation]
) -> Fitted:
    """Return the predictor of its parts."""
    batch = Batch([each.facts for each in seen])
    observed = {family: batch.part(chosen) for family, chosen in _of_families(batch).items()}
    known = {name: frozenset(batch.members(name)) - {""} for name in KNOWN_BY}
    known["vendor"] = frozenset(
        each.facts.vendor for each in seen if each.origin == "measured"
    )  # notes are a figure each
    known["setting"] = frozenset(batch.members(*SETTING))
    return Fitted(coefficients, observed, weights, intervals, tuple(seen), known)
