"""The basis of a prediction in words: the measurements nearest to it, and what would make it better."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from gpuexplore.analysis.prediction.calibration import ObservedEfficiency
from gpuexplore.analysis.prediction.gpu import RELEVANT as RELEVANT_MEASUREMENT
from gpuexplore.analysis.prediction.gpu import CallEstimate
from gpuexplore.analysis.prediction.ideal_time import CALL_S
from gpuexplore.analysis.prediction.priors import PRIORS, Posterior, Regime
from gpuexplore.core.model import Case, Device
from gpuexplore.core.units import format_percent, format_seconds

RELEVANT = 0.5  # share of a case's variance that an observation shares
MOST_NAMED = 3

Origin = Literal["measured", "published", "noted", "recorded", "own"]
ORIGINS: Mapping[Origin, tuple[str, str]] = MappingProxyType(
    {
        "measured": ("published measurement", "published measurements"),
        "published": ("published result", "published results"),
        "noted": ("result noted in the table", "results noted in the table"),
        "recorded": ("recorded result", "recorded results"),
        "own": ("result of this machine", "results of this machine"),
    }
)


def basis_of_library(estimate: CallEstimate, found: Posterior, seen: Sequence[ObservedEfficiency]) -> str:
    """Return e.g. ``12 results of this machine; 41 published measurements, the nearest on A100 SXM 80GB``."""
    own = _named(found, seen)
    near = [each for each in estimate.nearby if each.relevance >= RELEVANT_MEASUREMENT]
    if not near:
        return own or "no similar measurement: fitted to published measurements of other calls"
    names = list(dict.fromkeys(each.device for each in near))[:MOST_NAMED]
    words = ORIGINS["measured"][estimate.near > 1]
    devices = f"{'the nearest ' if estimate.near > 1 else ''}on {', '.join(names)}"
    return "; ".join(filter(None, (own, f"{estimate.near} {words}, {devices}")))


def better_of(case: Case, device: Device, estimate: CallEstimate, *, own: bool) -> str | None:
    """Return what would make a prediction better; None where this very device measured it."""
    if own:
        return None
    command = f"`gpuexplore run {case.operation} --shape {case.shape} --dtype {case.dtype}`"
    if estimate.measured_device:
        return f"run {command} on {device.title}: your own results count most"
    return f"run {command} on {device.title}, which has no measurements yet, or contribute a recording of it"


def basis_of(regime: Regime, found: Posterior, seen: Sequence[ObservedEfficiency]) -> str:
    """Return e.g. ``16 published results, the nearest on H100 SXM5, H200 SXM and GH200``."""
    return _named(found, seen) or f"no similar measurement: {_assumption(regime)}"


def _named(found: Posterior, seen: Sequence[ObservedEfficiency]) -> str:
    ranked = sorted(zip(found.relevance, seen, strict=True), key=lambda pair: -pair[0])
    near = [observation for share, observation in ranked if share >= RELEVANT]
    if not near:
        return ""
    counts = Counter(observation.origin for observation in near)
    seen_results = " and ".join(f"{count} {ORIGINS[origin][count > 1]}" for origin, count in counts.most_common())
    names = list(dict.fromkeys(observation.device.title for observation in near))[:MOST_NAMED]
    return f"{seen_results}, {'the nearest ' if len(near) > 1 else ''}on {', '.join(names)}"


def _assumption(regime: Regime) -> str:
    if regime not in PRIORS:
        return f"one call is assumed to cost {format_seconds(CALL_S[regime.processor])}"
    return f"{format_percent(regime.efficiency)} of the {regime.bound} limit is assumed"
