"""Predicted time of a case on a local or hypothetical device: fitted terms, corrected by measurements.

A library's calls on GPUs are predicted by terms fitted to published measurements; all else by its ideal time and what
was seen of its kind. Every prediction carries a 90 % prediction interval, and names what it rests on.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log
from pathlib import Path

from gpuexplore import recorded
from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.calibration import (
    NOISE,
    UNSEARCHED_NOISE,
    Calibration,
    ObservedEfficiency,
    features_of,
    from_published,
    from_results,
    library_features,
    regime_of,
)
from gpuexplore.analysis.prediction.calibration import calibrate as calibrated_on
from gpuexplore.analysis.prediction.calls import (
    CALL_S,
    CALLS,
    CALLS_OF_TIMING,
    CALLS_WORDS,
    USUAL,
    USUAL_CALLS,
    Arithmetic,
    Calls,
    Conditions,
    Ideal,
    Support,
    arithmetic,
    calls_of,
    calls_on,
    conditions_stated,
    ideal,
    in_calls,
)
from gpuexplore.analysis.prediction.gpu import RELEVANT as RELEVANT_MEASUREMENT
from gpuexplore.analysis.prediction.gpu import BatchEstimate, CallEstimate, Nearest
from gpuexplore.analysis.prediction.gpu.facts import Numbers, facts_of, is_of_library, moves_only
from gpuexplore.analysis.prediction.gpu.terms import exponential
from gpuexplore.analysis.prediction.priors import LIBRARY, PRIORS, Features, Posterior, Regime, partition
from gpuexplore.analysis.prediction.roof import DeviceLimit, boosts_further, roofs
from gpuexplore.core import Case, Device, Peak, Result, format_percent, format_seconds, once
from gpuexplore.core.dtypes import format_named
from gpuexplore.operations import operation_named

__all__ = [
    "CALLS",
    "CALLS_OF_TIMING",
    "CALLS_WORDS",
    "INTERVAL",
    "USUAL_CALLS",
    "Calibration",
    "Calls",
    "Conditions",
    "DeviceLimit",
    "Nearest",
    "Prediction",
    "Support",
    "UncertainValue",
    "arithmetic",
    "boosts_further",
    "calibrate",
    "calls_of",
    "calls_on",
    "conditions_stated",
    "in_calls",
    "predict",
    "predict_each",
    "roofs",
]

INTERVAL = 0.9
RELEVANT = 0.5  # share of a case's variance that an observation shares
WITHOUT_LAUNCH = list(CALLS).index("cold")
DEVIATIONS = 1.645  # on each side of a normal distribution, for INTERVAL


@dataclass(frozen=True, slots=True)
class UncertainValue:
    """A figure, and the interval it lies in."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "UncertainValue":
        """Return a multiple of this figure."""
        return UncertainValue(self.value * factor, self.low * factor, self.high * factor)

    def over(self, other: "UncertainValue") -> "UncertainValue":
        """Return the ratio to a figure whose errors are independent: relative half-widths add up as squares."""
        value = self.value / other.value
        below = hypot(log(self.value / self.low), log(other.high / other.value))
        above = hypot(log(self.high / self.value), log(other.value / other.low))
        return UncertainValue(value, value * exp(-below), value * exp(above))


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted time of a case; times in seconds, None where they are unknown or there are none.

    Attributes:
        case: what is predicted; its device is the id of `device`.
        device: of this machine or of the table.
        support: whether the device has units for the dtype.
        reason: why it is emulated, unsupported or unknown; None for a native dtype.
        time_s: the median of what is expected.
        low_s: lower end of the interval that covers INTERVAL of the cases.
        high_s: its upper end.
        bound: the term that decides.
        peak: compute peak of the units that do the arithmetic.
        basis: what it rests on, in words.
        calls: how calls follow one another.
        nearest: measurements of others that it rests on, the nearest first.
        better: what would make it better; None where nothing is known that would.
    """

    case: Case
    device: Device
    support: Support
    reason: str | None
    time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    bound: Bound | None = None
    peak: Peak | None = None
    basis: str = "nothing"
    calls: Calls = USUAL_CALLS
    nearest: tuple[Nearest, ...] = ()
    better: str | None = None

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """The interval of the time, seconds; None without one."""
        return None if self.low_s is None or self.high_s is None else (self.low_s, self.high_s)

    @property
    def flop_per_s(self) -> float | None:
        """FLOP/s at the predicted time."""
        flop_count = operation_named(self.case.operation).flop_count(self.case.shape)
        return flop_count / self.time_s if self.time_s else None

    @property
    def mfu(self) -> float | None:
        """Fraction of `peak`, 0 to 1; None for an operation without FLOPs."""
        return self.flop_per_s / self.peak.flop_per_s if self.flop_per_s and self.peak else None


def calibrate(results: Sequence[Result] = ()) -> Calibration:
    """Return the calibration on published, noted and recorded results and on `results` of this machine."""
    if not results:
        return _on_what_ships(recorded.FOLDER)
    return calibrated_on((*_shipped(recorded.FOLDER), *from_results(results)))


@once
def _on_what_ships(folder: Path) -> Calibration:
    """Return the calibration on no other results: its processes take as long again, and are kept with it."""
    return calibrated_on(_shipped(folder))


@once
def _shipped(_folder: Path) -> tuple[ObservedEfficiency, ...]:
    """Return the observations in what ships, which is read once: working them out takes a quarter of a second."""
    results = (result for _, result in recorded.recorded_results())
    return (*from_published(), *from_results(results, "recorded"))


def predict(case: Case, device: Device, calibration: Calibration, conditions: Conditions = USUAL) -> Prediction:
    """Return how long `case` would take on `device`.

    Args:
        conditions: how calls follow one another, and what else is known of the call.
    """
    return predict_each([(case, device)], calibration, conditions)[0]


def predict_each(
    asked: Sequence[tuple[Case, Device]],
    calibration: Calibration,
    conditions: Conditions = USUAL,
    *,
    explained: bool = True,
) -> tuple[Prediction, ...]:
    """Return how long each case would take on its device: a library's calls on GPUs at once, which is faster.

    Args:
        explained: whether what they rest on is worked out too, which takes as long again.
    """
    count = len(asked)
    units = [arithmetic(case, device) for case, device in asked]
    compared = [at for at in range(count) if _compares_with_fp32(*asked[at], units[at], calibration)]
    asked = [*asked, *((replace(asked[at][0], dtype="fp32"), asked[at][1]) for at in compared)]
    units += [arithmetic(case, device) for case, device in asked[count:]]
    bare = [
        Prediction(*call, of_call.support, of_call.reason, peak=of_call.peak, calls=conditions.calls)
        for call, of_call in zip(asked, units, strict=True)
    ]
    libraries = [at for at, of_call in enumerate(units) if is_of_library(*asked[at], of_call)]
    calls = [facts_of(*asked[at], units[at], conditions) for at in libraries]
    by_library: dict[int, Prediction] = {}
    if calls:
        judged = calibration.gpus.judged(calls, list(CALLS))
        moved = calibration.gpus.searched_gain() if conditions.searched else 0.0
        timed = _of_library([bare[at] for at in libraries], judged, calibration, moved=moved, explained=explained)
        by_library = dict(zip(libraries, timed, strict=True))
    others = {at: (bare[at], of_call) for at, of_call in enumerate(units) if at not in by_library}
    timed_by_kind = _by_kind(others, calibration, conditions, explained=explained)
    found = [by_library[at] if at in by_library else timed_by_kind[at] for at in range(len(units))]
    launch_s = _launch_alone_s(calibration) if conditions.calls == "single" else 0.0
    for at, wide in zip(compared, found[count:], strict=True):
        if found[at].support == "native":
            found[at] = _no_slower(found[at], _within_roofs(wide, launch_s))
        elif found[at].bound == "compute":
            found[at] = _no_faster(found[at], _within_roofs(wide, launch_s))
    return tuple(_within_roofs(each, 0.0 if each.device.kind == "cpu" else launch_s) for each in found[:count])


def _launch_alone_s(calibration: Calibration) -> float:
    """Return what a single call takes beyond a queued one."""
    return exponential(calibration.gpus.coefficients, "launch_when_single")


def _compares_with_fp32(case: Case, device: Device, units: Arithmetic, calibration: Calibration) -> bool:
    """Return whether fp32 bounds a GPU's prediction: products computed in it take as long at least, others at most.

    A native format has at most fp32's bytes and at least its peak, so that products are no slower unless measurements
    of the device say so.
    """
    dtype = format_named(case.dtype)
    if device.kind == "cpu" or dtype.accumulate != "fp32" or dtype.name == "fp32":
        return False
    if units.support == "emulated":
        return operation_named(case.operation).is_matrix_product
    is_bound = moves_only(case) or not calibration.is_measured(device)
    return units.support == "native" and dtype.bits >= 16 and is_bound


def _no_slower(found: Prediction, than: Prediction) -> Prediction:
    """Return a prediction whose middle and lower end are no longer than those of another one."""
    if found.time_s is None or than.time_s is None or found.low_s is None or than.low_s is None:
        return found
    return replace(found, time_s=min(found.time_s, than.time_s), low_s=min(found.low_s, than.low_s))


def _within_roofs(found: Prediction, launch_s: float) -> Prediction:
    """Return a prediction none of whose times is shorter than the limits of its device allow.

    The upper end moves with the middle: a limit excludes short times, and makes no prediction surer.

    Args:
        launch_s: that is over before the device works.
    """
    if found.time_s is None or found.low_s is None or found.high_s is None:
        return found
    for roof in roofs(found.case, found.device, found.peak):
        least_s = roof.least_s + launch_s if roof.least_s else 0.0
        if least_s > found.time_s:
            found = replace(found, bound=roof.bound, time_s=least_s, high_s=found.high_s * least_s / found.time_s)
        if least_s > (found.low_s or 0.0):
            found = replace(found, low_s=least_s)
    return found


def _no_faster(found: Prediction, than: Prediction) -> Prediction:
    """Return a prediction none of whose times is shorter than the same end of another one."""
    if found.time_s is None or than.time_s is None:
        return found
    times = {name: max(getattr(found, name), getattr(than, name)) for name in ("time_s", "low_s", "high_s")}
    return replace(found, **times)


def _by_kind(
    asked: Mapping[int, tuple[Prediction, Arithmetic]],
    calibration: Calibration,
    conditions: Conditions,
    *,
    explained: bool,
) -> dict[int, Prediction]:
    """Return the ideal times at the efficiency of what was seen of their kinds; those of one process at once."""
    found: dict[int, Prediction] = {}
    alike = defaultdict[tuple[Calibration, str], list[tuple[int, Regime, Ideal, Features]]](list)
    for at, (call, units) in asked.items():
        best = ideal(call.case, call.device, units)
        if units.support == "unsupported" or best is None:
            reason = units.reason or f"the memory bandwidth of {call.device.name} is not known"
            found[at] = replace(call, reason=reason)
        else:
            regime = regime_of(call.case, call.device, units, best)
            own = calibration.without_namesakes(call.device)
            features = own.of_device(regime, features_of(call.case, call.device, units, best), call.device)
            alike[own, partition(regime)].append((at, regime, best, features))
    noise = hypot(NOISE, 0.0 if conditions.searched else UNSEARCHED_NOISE)
    for (own, _), kind in alike.items():
        learned = own.process(kind[0][1])([features for *_, features in kind], noise)
        for (at, regime, best, _), posterior in zip(kind, learned, strict=True):
            call = asked[at][0]
            floor_s = best.floor_s if best.bound == "overhead" else 0.0
            middle = max(best.time_s / regime.efficiency * exp(-posterior.mean), floor_s)
            spread = exp(DEVIATIONS * posterior.deviation)
            is_single = call.device.kind != "cpu" and conditions.calls == "single"
            once_s = _launch_alone_s(own) if is_single else 0.0
            found[at] = replace(
                call,
                time_s=middle + once_s,
                low_s=max(middle / spread, floor_s) + once_s,
                high_s=middle * spread + once_s,
                bound=best.bound,
                basis=_basis_of(regime, posterior, own.seen(regime)) if explained else "",
            )
    return found


def _of_library(
    asked: Sequence[Prediction], judged: BatchEstimate, calibration: Calibration, *, moved: float, explained: bool
) -> list[Prediction]:
    """Return the fitted times of calls, moved by what was measured on the devices themselves.

    Args:
        asked: the calls, without their times.
        judged: what is fitted for them in each kind of calls.
        calibration: what was measured.
        moved: what their shapes take of the time of others, a natural logarithm.
        explained: as of `predict_each`.
    """
    kinds = list(CALLS)
    measured = _measured(asked, judged, calibration)
    found = []
    for first, call in zip(range(0, len(judged.rows), len(kinds)), asked, strict=True):
        kind = kinds.index(call.calls)
        fitted_s = judged.times_s[first : first + len(kinds)]
        estimate = calibration.gpus.estimate_of(judged, first + kind, explained=explained)
        own = calibration.without_namesakes(call.device)
        if first + kind in measured:
            queued = measured[first + kinds.index("queued")]
            each = _as_queued(
                _around(float(fitted_s[kinds.index("queued")]), moved - queued.mean, queued.deviation), fitted_s
            )
            if call.calls in own.kinds_measured(call.device):
                each[kind] = _around(
                    estimate.time_s, moved - measured[first + kind].mean, measured[first + kind].deviation
                )
        else:
            noise = _of_other_author(call.case)
            each = [
                _around(float(fitted_s[at]), moved, hypot(float(judged.deviations[first + at]), noise))
                for at in range(len(kinds))
            ]
        time = _in_order(each, kind)
        timed = replace(call, time_s=time.value, low_s=time.low, high_s=time.high, bound=estimate.bound)
        found.append(_explained(timed, estimate, measured.get(first + kind), own) if explained else timed)
    return found


def _explained(found: Prediction, estimate: CallEstimate, of_device: Posterior | None, own: Calibration) -> Prediction:
    """Return a prediction with what it rests on: the fit, and where there is any, what its device itself measured."""
    relevance = of_device.relevance if of_device else ()
    return replace(
        found,
        basis=_basis_of_library(estimate, relevance, own.seen(LIBRARY) if of_device else ())
        + ("" if of_device else _other_author_note(found.case)),
        nearest=estimate.nearby,
        better=None
        if any(share >= RELEVANT for share in relevance)  # this very device measured it
        else _better_of(found.case, found.device, estimate),
    )


def _measured(asked: Sequence[Prediction], judged: BatchEstimate, calibration: Calibration) -> dict[int, Posterior]:
    """Return by how much devices themselves were measured to differ from estimates, natural logarithms.

    Returns:
        By the index among the estimates: of each call on such a device when it is queued, and as it is asked for.
    """
    kinds = list(CALLS)
    found: dict[int, Posterior] = {}
    own = [calibration.without_namesakes(each.device) for each in asked]
    for known in dict.fromkeys(own):
        places = [
            number * len(kinds) + kind
            for number, each in enumerate(asked)
            if own[number] is known and known.is_measured(each.device, LIBRARY)
            for kind in {kinds.index("queued"), kinds.index(each.calls)}
        ]
        features = []
        for place in places:
            each = asked[place // len(kinds)]
            features.append(
                known.of_device(
                    LIBRARY,
                    library_features(each.case, float(judged.deviations[place]), judged.rows[place]),
                    each.device,
                )
            )
        if places:
            found |= zip(places, known.process(LIBRARY)(features, NOISE), strict=True)
    return found


def _of_other_author(case: Case) -> float:
    """Return how unlike the vendor's library another one is, which no published measurement is of: a deviation.

    Products of Triton took 0.6 to 4.3 times as long as torch's in the recorded runs of an H100 and an H200; of compiled
    functions there are none.
    """
    operation = operation_named(case.operation)
    implementation = operation.implementation_named(case.implementation)
    if implementation == operation.vendor_library:
        return 0.0
    return 0.8 if implementation.hand_written else 0.3


def _around(time_s: float, moved: float, deviation: float) -> UncertainValue:
    """Return a time that is moved, and its interval; both in natural logarithms."""
    middle = time_s * exp(moved)
    spread = exp(DEVIATIONS * deviation)
    return UncertainValue(middle, middle / spread, middle * spread)


def _as_queued(queued: UncertainValue, fitted_s: Numbers) -> list[UncertainValue]:
    """Return a call in each kind of calls, with the times that its device was measured to take when it is queued.

    Those in a graph and of a cold kernel differ from it as they are fitted to; a single call takes a launch of the
    host more, which nothing that was measured in a queue tells of.
    """
    more_s = float(fitted_s[2] - fitted_s[1])
    single = UncertainValue(queued.value + more_s, queued.low + more_s, queued.high + more_s)
    in_graph, cold = (queued.times(float(fitted_s[kind] / fitted_s[1])) for kind in (0, 3))
    return [in_graph, queued, single, cold]


def _in_order(kinds: Sequence[UncertainValue], kind: int) -> UncertainValue:
    """Return the times of one of the kinds of calls, ordered among theirs; ends move outwards, so that intervals cover.

    Args:
        kinds: of one call, the first three with ever more of its launch in its time.
        kind: index of the one that is returned.
    """
    if kind == WITHOUT_LAUNCH:
        return kinds[kind]
    kinds = kinds[:WITHOUT_LAUNCH]
    before = kinds[: kind + 1]
    return UncertainValue(
        max(each.value for each in before), min(each.low for each in kinds[kind:]), max(each.high for each in before)
    )


# The basis of a prediction in words: the measurements nearest to it, and what would make it better.


ORIGINS: Mapping[str, tuple[str, str]] = {
    "measured": ("published measurement", "published measurements"),
    "published": ("published result", "published results"),
    "noted": ("result noted in the table", "results noted in the table"),
    "recorded": ("recorded result", "recorded results"),
    "own": ("result of this machine", "results of this machine"),
}


def _basis_of_library(estimate: CallEstimate, relevance: Sequence[float], seen: Sequence[ObservedEfficiency]) -> str:
    """Return e.g. ``12 results of this machine; 41 published measurements, the nearest on A100 SXM 80GB``."""
    own = _named(relevance, seen)
    near = [each for each in estimate.nearby if each.relevance >= RELEVANT_MEASUREMENT]
    if not near:
        return own or "no similar measurement: fitted to published measurements of other calls"
    names = list(dict.fromkeys(each.device for each in near))[:3]
    words = ORIGINS["measured"][estimate.near > 1]
    devices = f"{'the nearest ' if estimate.near > 1 else ''}on {', '.join(names)}"
    return "; ".join(filter(None, (own, f"{estimate.near} {words}, {devices}")))


def _other_author_note(case: Case) -> str:
    library = operation_named(case.operation).vendor_library
    if not _of_other_author(case):
        return ""
    return f"; no measurement of {case.implementation}: as a call of {library.name}, in a wider interval"


def _better_of(case: Case, device: Device, estimate: CallEstimate) -> str:
    """Return advice for improving a prediction."""
    command = f"`gpuexplore run {case.operation} --shape {case.shape} --dtype {case.dtype}`"
    if estimate.measured_device:
        return f"run {command} on {device.title}: your own results count most"
    return f"run {command} on {device.title}, which has no measurements yet, or contribute a recording of it"


def _basis_of(regime: Regime, found: Posterior, seen: Sequence[ObservedEfficiency]) -> str:
    """Return e.g. ``16 published results, the nearest on H100 SXM5, H200 SXM and GH200``."""
    if near := _named(found.relevance, seen):
        return near
    if regime not in PRIORS:
        return f"no similar measurement: one call is assumed to cost {format_seconds(CALL_S[regime.processor])}"
    return f"no similar measurement: {format_percent(regime.efficiency)} of the {regime.bound} limit is assumed"


def _named(relevance: Sequence[float], seen: Sequence[ObservedEfficiency]) -> str:
    relevant = [(share, observation) for share, observation in zip(relevance, seen, strict=True) if share >= RELEVANT]
    near = [observation for _, observation in sorted(relevant, key=lambda pair: -pair[0])]
    if not near:
        return ""
    counts = Counter(observation.origin for observation in near)
    seen_results = " and ".join(f"{count} {ORIGINS[origin][count > 1]}" for origin, count in counts.most_common())
    names = list(dict.fromkeys(observation.device.title for observation in near))[:3]
    return f"{seen_results}, {'the nearest ' if len(near) > 1 else ''}on {', '.join(names)}"
