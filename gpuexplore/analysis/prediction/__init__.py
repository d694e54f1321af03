"""How long a case would take on a local or hypothetical device: the ideal time, corrected by measurements.

Every prediction carries a 90 % prediction interval, and names what it was calibrated on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot
from types import MappingProxyType

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.arithmetic import Support, arithmetic
from gpuexplore.analysis.prediction.calibration import (
    NOISE,
    UNSEARCHED_NOISE,
    Calibration,
    Observation,
    ObservationSource,
    features_of,
    from_noted,
    from_published,
    from_results,
    regime_of,
)
from gpuexplore.analysis.prediction.calibration import calibrate as calibrated_on
from gpuexplore.analysis.prediction.calls import CALLS, USUAL_CALLS, Calls
from gpuexplore.analysis.prediction.ideal_time import CALL_S, ideal
from gpuexplore.analysis.prediction.priors import CALL_PRIOR, Regime, prior_of
from gpuexplore.analysis.prediction.regression import Posterior
from gpuexplore.model import Case, Device, Peak, Result
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.units import format_percent, format_seconds

__all__ = ["CALLS", "INTERVAL", "USUAL_CALLS", "Calibration", "Calls", "Prediction", "Support", "calibrate", "predict"]

INTERVAL = 0.9
DEVIATIONS = 1.645  # on each side of a normal distribution, for INTERVAL
RELEVANT = 0.5  # share of a case's variance that an observation shares
MOST_NAMED = 3
ORIGINS: Mapping[ObservationSource, tuple[str, str]] = MappingProxyType(
    {
        "published": ("published result", "published results"),
        "noted": ("result noted in the table", "results noted in the table"),
        "recorded": ("recorded result", "recorded results"),
        "own": ("result of this machine", "results of this machine"),
    }
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """How long a case would take; times in seconds, None where they are unknown or there are none.

    Attributes:
        case: what is predicted; its device is the id of `device`.
        device: of this machine or of the table.
        support: whether the device has units for the dtype.
        reason: why it is emulated, unsupported or unknown; None for a native dtype.
        time_s: the median of what is expected.
        low_s: lower end of the interval that holds in INTERVAL of the cases.
        high_s: its upper end.
        bound: the term that decides.
        peak: compute peak of the units that do the arithmetic.
        basis: what it was calibrated on.
        calls: how calls follow one another.
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


def predict(
    case: Case, device: Device, calibration: Calibration, *, searched: bool = False, calls: Calls = USUAL_CALLS
) -> Prediction:
    """Return how long `case` would take on `device`.

    Args:
        calls: how calls follow one another, a key of CALLS.
        searched: the shape is the best of a search, as published ones are; others have less luck with tiles.
    """
    units = arithmetic(case, device)
    best = ideal(case, device, units)
    if units.support == "unsupported" or best is None:
        reason = units.reason or f"the memory bandwidth of {device.name} is not known"
        return Prediction(case, device, units.support, reason, peak=units.peak, calls=calls)
    calibration = calibration.without_namesakes(device)
    regime = regime_of(case, device, units, best)
    luck = 0.0 if searched else UNSEARCHED_NOISE
    features = {**features_of(case, device, units, best), "device": calibration.device_key(device)}
    found = calibration.process(regime).estimate(features, hypot(NOISE, luck))
    floor_s = best.floor_s if best.bound == "overhead" else 0.0
    middle = max(best.time_s / prior_of(regime).efficiency * exp(-found.mean), floor_s)
    spread = exp(DEVIATIONS * found.deviation)
    return Prediction(
        case,
        device,
        units.support,
        units.reason,
        time_s=middle,
        low_s=max(middle / spread, floor_s),
        high_s=middle * spread,
        bound=best.bound,
        peak=units.peak,
        basis=_basis(regime, found, calibration.seen(regime)),
        calls=calls,
    )


def _basis(regime: Regime, found: Posterior, seen: Sequence[Observation]) -> str:
    """Return e.g. ``16 published results, the nearest on H100 SXM5, H200 SXM and GH200``."""
    ranked = sorted(zip(found.relevance, seen, strict=True), key=lambda pair: -pair[0])
    near = [observation for share, observation in ranked if share >= RELEVANT]
    if not near:
        return f"nothing like it: {_assumption(regime)}"
    counts = Counter(observation.origin for observation in near)
    seen_results = " and ".join(f"{count} {ORIGINS[origin][count > 1]}" for origin, count in counts.most_common())
    names = list(dict.fromkeys(observation.device.title for observation in near))[:MOST_NAMED]
    return f"{seen_results}, {'the nearest ' if len(near) > 1 else ''}on {', '.join(names)}"


def _assumption(regime: Regime) -> str:
    if prior_of(regime) is CALL_PRIOR:
        return f"one call is assumed to cost {format_seconds(CALL_S[regime.processor])}"
    return f"{format_percent(prior_of(regime).efficiency)} of the {regime.bound} limit is assumed"
