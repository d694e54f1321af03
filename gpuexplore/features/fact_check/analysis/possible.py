"""The possibility of a stated time: the rule of the fact check, for any operation, device and number."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType
from typing import Literal

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction import Prediction
from gpuexplore.analysis.prediction.calls import CALLS_WORDS
from gpuexplore.analysis.prediction.request import PredictionRequest, predictions
from gpuexplore.analysis.prediction.roof import DeviceLimit, boosts_further, roofs
from gpuexplore.core.dtypes import DTYPES, format_named
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Peak, Result
from gpuexplore.core.units import (
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_seconds,
    read_rate,
    read_seconds,
)
from gpuexplore.operations import operation_named

Verdict = Literal["above the roof", "as good as known", "possible", "unknown"]
SHORTEST_S = 1e-9
LONGEST_S = 1e6
# What rounding explains, of a time with three digits, and of a bandwidth that datasheets print with two or three.
ROUNDED: Mapping[Bound, float] = MappingProxyType({"compute": 0.01, "memory": 0.03})


@dataclass(frozen=True, slots=True)
class Possibility:
    """The plausibility of a time; true unless it is above a limit of its device.

    Attributes:
        prediction: how long the same would take by what is known, with its device and interval.
        time_s: that was stated, seconds.
        verdict: above the roof: no device of this name can; as good as known: within the interval of the prediction;
            possible: outside of it, and no limit that is known excludes it; unknown: no limit is.
        reason: the sentence that shows it, with the source of the limit.
    """

    prediction: Prediction
    time_s: float
    verdict: Verdict
    reason: str

    def __bool__(self) -> bool:
        return self.verdict != "above the roof"

    @property
    def flop_per_s(self) -> float:
        """FLOP/s in the stated time; 0 of what computes nothing."""
        return _flop_count(self.prediction) / self.time_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes/s in the stated time, each array moved once."""
        return _byte_count(self.prediction) / self.time_s


def is_possible(
    question: PredictionRequest,
    time: float | str | None,
    here: Iterable[Device],
    own: Sequence[Result] = (),
    *,
    rate: float | str | None = None,
) -> Possibility:
    """Return what is to be thought of a time, or of a rate.

    Args:
        question: one operation, shape, dtype and device.
        time: of a call, seconds or text like ``90us``; None where a rate is given.
        rate: FLOP/s, or text like ``1.2PFLOP/s`` or ``3TB/s``; None where a time is given.
        here: this machine's devices, a CPU with its ceilings.
        own: results of this machine to calibrate on.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    if (time is None) == (rate is None):
        raise InvalidInput("give exactly one of time, like 90us, and rate, like 1.2PFLOP/s or 3TB/s")
    stated_s = None if time is None else _seconds(time)
    found = predictions(question, here, own)
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} cases for one time: give one shape, one dtype, one gpu and one kind of calls")
    (prediction,) = found
    time_s = _seconds_at(rate, prediction) if stated_s is None else stated_s
    verdict, reason = _judged(prediction, time_s)
    operation = operation_named(prediction.case.operation)
    shape = prediction.case.shape
    for flag in operation.flags if verdict == "above the roof" else ():
        if flag not in operation.flags_of(shape):
            other = is_possible(replace(question, sizes="", shapes=f"{shape},{flag}=1"), time_s, here, own)
            reason += f"; possible with {flag}=1" if other else f", with {flag}=1 too"
    if verdict == "above the roof":
        reason += _other_arithmetic(question, prediction, time_s, here)
    return Possibility(prediction, time_s, verdict, reason)


def _other_arithmetic(
    question: PredictionRequest, prediction: Prediction, time_s: float, here: Iterable[Device]
) -> str:
    """Name the faster arithmetic on the same arrays in which the time is possible: tf32 on arrays of fp32."""
    ours = prediction.case.dtype
    used = prediction.peak
    if used is None or ours not in DTYPES:
        return ""
    faster = {
        peak.dtype: peak
        for peak in prediction.device.peaks
        if peak.dtype in DTYPES
        and DTYPES[peak.dtype].storage == DTYPES[ours].storage
        and peak.flop_per_s > used.flop_per_s
    }
    for name, peak in faster.items():
        (other,) = predictions(replace(question, dtypes=name), here)
        if other.peak == peak and _judged(other, time_s)[0] in ("as good as known", "possible"):
            rate = format_flop_per_s(peak.flop_per_s)
            return f"; arithmetic in {name} would explain it: {rate} on {peak.unit} units ({peak.source})"
    return ""


def _seconds(time: float | str) -> float:
    found = read_seconds(time) if isinstance(time, str) else time
    if found is None or not SHORTEST_S <= found <= LONGEST_S:
        raise InvalidInput.of("time", time, "1ns to 1000000s, with the unit: 90us, 1.25 ms, 2s")
    return float(found)


def _seconds_at(rate: float | str | None, prediction: Prediction) -> float:
    """Return the time of a call at a rate of arithmetic, or of its arrays moved once each."""
    operation = prediction.case.operation
    stated = read_rate(rate) if isinstance(rate, str) else (float(rate or 0), "FLOP/s")
    if stated is None:
        units = "FLOP/s and B/s with the prefixes k, M, G, T and P: 1.2PFLOP/s, 900 TFLOPS, 3.35TB/s"
        raise InvalidInput.of("rate", rate, units)
    amount = _flop_count(prediction) if stated[1] == "FLOP/s" else _byte_count(prediction)
    if not amount:
        raise InvalidInput.of("rate", rate, f"bytes per second, like 3TB/s: {operation} computes nothing")
    found = amount / stated[0] if stated[0] > 0 else inf
    if not SHORTEST_S <= found <= LONGEST_S:
        least, most = (f"{amount / seconds:.3g} {stated[1]}" for seconds in (LONGEST_S, SHORTEST_S))
        raise InvalidInput.of("rate", rate, f"{least} to {most}, where a call takes 1 ns to 1,000,000 s")
    return found


def _judged(prediction: Prediction, time_s: float) -> tuple[Verdict, str]:
    device = prediction.device
    limits = list(roofs(prediction.case, device, prediction.peak))
    for roof in limits:
        if roof.least_s > time_s * (1 + ROUNDED[roof.bound]):
            return "above the roof", f"{device.title}: {_most(roof)}"
    known = prediction.interval_s
    if known is None:  # without a peak for its arithmetic
        why = f": {prediction.reason}" if prediction.reason else ""
        return "unknown", f"no limit of its arithmetic is known, and nothing is predicted{why}"
    of_calls = "" if device.kind == "cpu" else f" {CALLS_WORDS[prediction.calls]}"
    interval = f"nine in ten{of_calls} are predicted to take {format_interval(known, format_seconds)}"
    if not limits:
        return "unknown", f"no limit of {device.title} is known; {interval}"
    above = [_above(roof, device, time_s) for roof in limits if time_s * roof.per_s < roof.amount]
    said = "; ".join((*above, interval))
    if time_s >= known[0]:
        return ("as good as known" if time_s <= known[1] else "possible"), said
    if device.cache_bytes is None:
        return "unknown", f"its cache is unknown, so its memory's bandwidth was not compared; {said}"
    return "possible", said if above else f"faster than is known, and below every limit: {interval}"


def _most(roof: DeviceLimit) -> str:
    """Return what a device reaches at most, in words, with the source."""
    limit = _words(roof)
    if roof.headroom == 1.0 or roof.is_measured:
        return limit
    return f"{limit}, and {format_percent(roof.headroom - 1)} more at its highest clock"


def _words(roof: DeviceLimit) -> str:
    if isinstance(roof.limit, Peak):
        return f"it computes at most {format_flop_per_s(roof.per_s)} ({roof.limit.dtype}, {roof.limit.source})"
    return f"its memory gives at most {format_bytes_per_s(roof.per_s)} (memory, {roof.limit.source})"


def _above(roof: DeviceLimit, device: Device, time_s: float) -> str:
    """Return by how much a rate that no limit excludes is above a printed or measured one, and why it can be."""
    more = format_percent(roof.amount / time_s / roof.per_s - 1)
    if roof.is_measured:
        return f"{more} above the measured peak, which is not a hard limit: {_words(roof)}"
    if roof.amount / time_s <= roof.per_s * (1 + ROUNDED[roof.bound]):
        return f"{more} above the printed limit, as much as rounding explains: {_words(roof)}"
    clock = "the boost clock" if boosts_further(device) else "the clock"
    only_if = f"possible only if the clock ran above {clock} it is quoted at"
    return f"{more} above the datasheet's peak: {only_if}: {_words(roof)}"


def _flop_count(prediction: Prediction) -> int:
    return operation_named(prediction.case.operation).flop_count(prediction.case.shape)


def _byte_count(prediction: Prediction) -> int:
    dtype = format_named(prediction.case.dtype)
    return operation_named(prediction.case.operation).byte_count(prediction.case.shape, dtype)
