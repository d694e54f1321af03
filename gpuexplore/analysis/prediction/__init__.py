"""Predicted time of a case on a local or hypothetical device: fitted terms, corrected by measurements.

A library's calls on GPUs are predicted by terms fitted to published measurements; all else by its ideal time and what
was seen of its kind. Every prediction carries a 90 % prediction interval, and names what it rests on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.basis import (
    RELEVANT,
    basis_of,
    basis_of_library,
    better_of,
)
from gpuexplore.analysis.prediction.calibration import (
    NOISE,
    UNSEARCHED_NOISE,
    Calibration,
    ObservedEfficiency,
    features_of,
    from_noted,
    from_published,
    from_results,
    library_features,
    regime_of,
)
from gpuexplore.analysis.prediction.calibration import calibrate as calibrated_on
from gpuexplore.analysis.prediction.calls import CALLS, USUAL, USUAL_CALLS, Calls, Conditions
from gpuexplore.analysis.prediction.gpu import BatchEstimate, CallEstimate, Nearest
from gpuexplore.analysis.prediction.gpu.facts import GpuCall, Numbers, facts_of, is_of_library, moves_only
from gpuexplore.analysis.prediction.gpu.terms import exponential
from gpuexplore.analysis.prediction.ideal_time import Arithmetic, Support, arithmetic, ideal
from gpuexplore.analysis.prediction.priors import LIBRARY, Posterior
from gpuexplore.analysis.prediction.roof import roofs
from gpuexplore.core.dtypes import format_named
from gpuexplore.core.model import Case, Device, Peak, Result
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results

__all__ = [
    "CALLS",
    "INTERVAL",
    "USUAL_CALLS",
    "Calibration",
    "Calls",
    "Conditions",
    "Nearest",
    "Prediction",
    "Support",
    "UncertainValue",
    "calibrate",
    "predict",
    "predict_each",
]

INTERVAL = 0.9
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
    recorded = (result for _, result in recorded_results())
    return calibrated_on(
        (*from_published(), *from_noted(), *from_results(recorded, "recorded"), *from_results(results))
    )


def predict(case: Case, device: Device, calibration: Calibration, conditions: Conditions = USUAL) -> Prediction:
    """Return how long `case` would take on `device`.

    Args:
        conditions: how calls follow one another, and what else is known of the call.
    """
    return predict_each([(case, device)], calibration, conditions)[0]


def predict_each(
    asked: Sequence[tuple[Case, Device]], calibration: Calibration, conditions: Conditions = USUAL
) -> tuple[Prediction, ...]:
    """Return how long each case would take on its device: a library's calls on GPUs at once, which is faster."""
    units = [arithmetic(case, device) for case, device in asked]
    bare = [_without_time(*call, of_call, conditions) for call, of_call in zip(asked, units, strict=True)]
    libraries = [at for at, of_call in enumerate(units) if is_of_library(*asked[at], of_call)]
    calls = [facts_of(*asked[at], units[at], conditions) for at in libraries]
    timed = _of_libraries([bare[at] for at in libraries], calls, calibration, conditions)
    by_library = dict(zip(libraries, timed, strict=True))
    found = [
        by_library.get(at) or _by_kind(bare[at], of_call, calibration, conditions) for at, of_call in enumerate(units)
    ]
    compared = [at for at, each in enumerate(found) if _compares_with_fp32(each, calibration)]
    in_fp32 = [(replace(found[at].case, dtype="fp32"), found[at].device) for at in compared]
    for at, wide in zip(compared, predict_each(in_fp32, calibration, conditions) if in_fp32 else (), strict=True):
        found[at] = (_no_slower if found[at].support == "native" else _no_faster)(found[at], wide)
    launch_s = _launch_alone_s(calibration) if conditions.calls == "single" else 0.0
    return tuple(_within_roofs(each, 0.0 if each.device.kind == "cpu" else launch_s) for each in found)


def _launch_alone_s(calibration: Calibration) -> float:
    """Return what a single call takes beyond a queued one."""
    return exponential(calibration.gpus.coefficients, "launch_when_single")


def _compares_with_fp32(found: Prediction, calibration: Calibration) -> bool:
    """Return whether fp32 bounds a GPU's prediction: products computed in it take as long at least, others at most.

    A native format has at most fp32's bytes and at least its peak, so that products are no slower unless measurements
    of the device say so.
    """
    case, dtype = found.case, format_named(found.case.dtype)
    operation = operation_named(case.operation)
    if found.device.kind == "cpu" or dtype.accumulate != "fp32" or dtype.name == "fp32":
        return False
    if found.support == "emulated":
        return operation.products is not None and found.bound == "compute"
    if found.support != "native" or dtype.bits < 16 or found.time_s is None:
        return False
    return (moves_only(case) or not calibration.is_measured(found.device)) and found.time_s > _least_in_fp32_s(found)


def _least_in_fp32_s(found: Prediction) -> float:
    """Return the seconds that no prediction of the case in fp32 is below."""
    case, device = replace(found.case, dtype="fp32"), found.device
    return max((roof.least_s for roof in roofs(case, device, arithmetic(case, device).peak)), default=0.0)


def _no_slower(found: Prediction, than: Prediction) -> Prediction:
    """Return a prediction whose middle and lower end are no longer than those of another one."""
    if found.time_s is None or than.time_s is None or found.low_s is None or than.low_s is None:
        return found
    time_s = min(found.time_s, than.time_s)
    return replace(found, time_s=time_s, low_s=min(found.low_s, than.low_s))


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
            high_s = found.high_s * least_s / found.time_s
            found = replace(found, bound=roof.bound, time_s=least_s, high_s=high_s)
        found = replace(found, low_s=max(found.low_s or 0.0, least_s))
    return found


def _no_faster(found: Prediction, than: Prediction) -> Prediction:
    """Return a prediction none of whose times is shorter than the same end of another one."""
    if found.time_s is None or than.time_s is None:
        return found
    times = {name: max(getattr(found, name), getattr(than, name)) for name in ("time_s", "low_s", "high_s")}
    return replace(found, **times)


def _without_time(case: Case, device: Device, units: Arithmetic, conditions: Conditions) -> Prediction:
    return Prediction(case, device, units.support, units.reason, peak=units.peak, calls=conditions.calls)


def _by_kind(asked: Prediction, units: Arithmetic, calibration: Calibration, conditions: Conditions) -> Prediction:
    """Return the ideal time at the efficiency of what was seen of its kind."""
    device = asked.device
    best = ideal(asked.case, device, units)
    if units.support == "unsupported" or best is None:
        return replace(asked, reason=units.reason or f"the memory bandwidth of {device.name} is not known")
    calibration = calibration.without_namesakes(device)
    regime = regime_of(asked.case, device, units, best)
    luck = 0.0 if conditions.searched else UNSEARCHED_NOISE
    features = {**features_of(asked.case, device, units, best), "device": calibration.device_key(device)}
    found = calibration.process(regime)(features, hypot(NOISE, luck))
    floor_s = best.floor_s if best.bound == "overhead" else 0.0
    middle = max(best.time_s / regime.efficiency * exp(-found.mean), floor_s)
    spread = exp(DEVIATIONS * found.deviation)
    is_single = device.kind != "cpu" and conditions.calls == "single"
    once_s = _launch_alone_s(calibration) if is_single else 0.0
    return replace(
        asked,
        time_s=middle + once_s,
        low_s=max(middle / spread, floor_s) + once_s,
        high_s=middle * spread + once_s,
        bound=best.bound,
        basis=basis_of(regime, found, calibration.seen(regime)),
    )


def _of_libraries(
    asked: Sequence[Prediction], calls: Sequence[GpuCall], calibration: Calibration, conditions: Conditions
) -> list[Prediction]:
    """Return the predictions of libraries' calls; none takes less than where less of its launch is in its time."""
    if not asked:
        return []
    judged = calibration.gpus.judged(calls, list(CALLS))
    moved = calibration.gpus.searched_gain() if conditions.searched else 0.0
    return [_of_library(call, judged, at * len(CALLS), calibration, moved=moved) for at, call in enumerate(asked)]


def _of_library(
    asked: Prediction, judged: BatchEstimate, first: int, calibration: Calibration, *, moved: float
) -> Prediction:
    """Return the fitted time of a call, moved by what was measured on the device itself.

    Args:
        asked: the call, without its time.
        judged: what is fitted for it in each kind of calls, among others.
        first: the index of the first kind.
        calibration: what was measured.
        moved: what its shape takes of the time of others, a natural logarithm.
    """
    device, kinds, gpus = asked.device, list(CALLS), calibration.gpus
    calibration = calibration.without_namesakes(device)
    kind, fitted_s = kinds.index(asked.calls), judged.times_s[first : first + len(kinds)]
    estimate, seen = gpus.estimate_of(judged, first + kind), tuple[ObservedEfficiency, ...]()
    if calibration.is_measured(device, LIBRARY):
        seen = calibration.seen(LIBRARY)
        queued = gpus.estimate_of(judged, first + kinds.index("queued"))
        of_queued = _measured(asked, queued, calibration)
        found = of_queued if queued == estimate else _measured(asked, estimate, calibration)
        each = _as_queued(_around(queued.time_s, moved - of_queued.mean, of_queued.deviation), fitted_s)
    else:
        found = Posterior(0.0, hypot(estimate.deviation, NOISE), ())
        deviations = judged.deviations[first : first + len(kinds)]
        each = [
            _around(float(time_s), moved, hypot(float(deviation), NOISE))
            for time_s, deviation in zip(fitted_s, deviations, strict=True)
        ]
    time = _in_order(each, kind)
    return replace(
        asked,
        time_s=time.value,
        low_s=time.low,
        high_s=time.high,
        bound=estimate.bound,
        basis=basis_of_library(estimate, found, seen),
        nearest=estimate.nearby,
        better=better_of(asked.case, device, estimate, own=any(share >= RELEVANT for share in found.relevance)),
    )


def _measured(asked: Prediction, estimate: CallEstimate, calibration: Calibration) -> Posterior:
    """Return by how much the device itself was measured to differ from the estimate, a natural logarithm."""
    features = {**library_features(asked.case, estimate), "device": calibration.device_key(asked.device)}
    return calibration.process(LIBRARY)(features, NOISE)


def _around(time_s: float, moved: float, deviation: float) -> UncertainValue:
    """Return a time that is moved, and its interval; both in natural logarithms."""
    middle, spread = time_s * exp(moved), exp(DEVIATIONS * deviation)
    return UncertainValue(middle, middle / spread, middle * spread)


def _as_queued(queued: UncertainValue, fitted_s: Numbers) -> list[UncertainValue]:
    """Return a call in each kind of calls, with the times that its device was measured to take when it is queued.

    A graph's are as much shorter as they are fitted to be; a single call takes a launch of the host more, which
    nothing that was measured in a queue tells of.
    """
    less, more_s = float(fitted_s[0] / fitted_s[1]), float(fitted_s[2] - fitted_s[1])
    single = UncertainValue(queued.value + more_s, queued.low + more_s, queued.high + more_s)
    return [queued.times(less), queued, single]


def _in_order(kinds: Sequence[UncertainValue], kind: int) -> UncertainValue:
    """Return the times of one of the kinds of calls, ordered among theirs; ends move outwards, so that intervals cover.

    Args:
        kinds: of one call, with ever more of its launch in its time.
        kind: index of the one that is returned.
    """
    before, after = kinds[: kind + 1], kinds[kind:]
    return UncertainValue(
        max(each.value for each in before), min(each.low for each in after), max(each.high for each in before)
    )
