"""The possibility of a stated time: the rule of the fact check, for any operation, device and number."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction import CALLS_WORDS, DeviceLimit, Prediction, arithmetic, boosts_further, roofs
from gpuexplore.analysis.prediction.request import PredictionRequest, predictions
from gpuexplore.core import (
    Bandwidth,
    Case,
    Device,
    InvalidInput,
    Peak,
    Result,
    Shape,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_seconds,
    read_rate,
    read_seconds,
    require,
)
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.hardware import ACCELERATORS, row_of
from gpuexplore.operations import operation_named

Verdict = Literal["above the roof", "as good as known", "possible", "unknown"]
# Of a call: `sparse`, with 2:4 sparsity; `cold`, its inputs in no cache; `constant`, they need not be read; `fused`, in
# a launch with others.
Hints = frozenset[str]
SHORTEST_S = 1e-9
LONGEST_S = 1e6
# What rounding explains, of a time with three digits, and of a bandwidth that datasheets print with two or three.
ROUNDED: Mapping[Bound, float] = {"compute": 0.01, "memory": 0.03, "overhead": 0.0}
# Two million calls per second: an empty kernel takes about a microsecond, in a CUDA graph too, and the shortest of the
# published measurements 1.7 µs.
LAUNCHES = Bandwidth(2e6, "published", "an empty kernel takes about 1 µs")
# Caches behind the L2, in which arrays can stay between calls: rows of accelerators, and their bytes at most.
# https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/white-papers/amd-cdna-3-white-paper.pdf
LAST_LEVEL_CACHES: Mapping[str, int] = {"mi3": 256 * 2**20, "rx-7900-xtx": 96 * 2**20, "apple": 256 * 2**20}
WITH_SPARSITY = re.compile(r"8\.|9\.|1\d\.|gfx9[45]")  # compute capabilities with 2:4 sparsity, at twice the dense rate
# Products that people call by a wider format: the format whose arrays they have at most, the rate in the table of
# accelerators, the format its clock is that of, and how many products each takes.
OTHER_PRODUCTS: Mapping[str, tuple[str, str, str, int]] = {
    "as three products in tf32": ("fp32", "tf32_tensor", "tf32", 3),
    "as nine products in bf16": ("fp32", "bf16_tensor", "bf16", 9),
    "with fp16 accumulation": ("fp16", "fp16_tensor_fp16acc", "fp16", 1),
    "in int8": ("fp8", "int8_tensor_tops", "fp8", 1),
    "in fp4": ("fp8", "fp4_tensor", "fp8", 1),
}


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
        case = self.prediction.case
        return operation_named(case.operation).flop_count(case.shape) / self.time_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes/s in the stated time, each array moved once."""
        return _byte_count(self.prediction.case) / self.time_s


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
    stated_s = None if time is None else seconds_of(time)
    found = predictions(question, here, own)
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} cases for one time: give one shape, one dtype, one gpu and one kind of calls")
    (prediction,) = found
    time_s = seconds_at(rate, prediction.case) if stated_s is None else stated_s
    verdict, reason, *_ = judged(prediction, time_s)
    return Possibility(prediction, time_s, verdict, reason)


def _limits_of(device: Device, case: Case, peak: Peak | None, hints: Hints) -> list[DeviceLimit]:
    """Return the limits of a call that are known, with `peak` that of the units that compute it."""
    row = row_of(device)
    if row is not None:
        alike = (other.cache_bytes or 0 for other in ACCELERATORS if other.architecture == row.architecture)
        behind = sum(size for key, size in LAST_LEVEL_CACHES.items() if row.key.startswith(key))
        if behind or not device.cache_bytes:
            device = replace(device, cache_bytes=behind or max(alike))
    moved = _byte_count(case)
    written = round(moved * operation_named(case.operation).written_share(case.shape))
    cache = device.cache_bytes or 0
    kept = min(cache, written) if "cold" in hints else cache
    has_zeros = peak is not None and peak.unit == "matrix" and peak.dtype not in ("fp32", "fp64")
    skips_zeros = has_zeros and "sparse" in hints and WITH_SPARSITY.match(device.compute_capability or "")
    amount = max(written - cache if "constant" in hints else moved - kept, 0)
    found = [
        replace(limit, per_s=limit.per_s * (2 if skips_zeros else 1))
        if limit.bound == "compute"
        else replace(limit, amount=amount)
        for limit in roofs(case, device, peak)
    ]
    has_launch = "fused" not in hints and device.kind != "cpu"
    return [*found, *([DeviceLimit("overhead", 1, LAUNCHES, LAUNCHES.bytes_per_s, 1.0)] if has_launch else ())]


def _explanations(prediction: Prediction, time_s: float, rounded: float, hints: Hints) -> Iterator[str]:
    """Yield what else than the stated call would take a time that is above its limits, each by limits of its own."""
    case = prediction.case
    peak = prediction.peak
    operation = operation_named(case.operation)
    others = [flag for flag in operation.flags if flag not in operation.flags_of(case.shape)]
    trials: list[tuple[str, Case, Peak | None, Hints]] = [
        *((words, other, of, hints) for words, other, of in _precisions(prediction)),
        *(
            (f"with {flag}=1", replace(case, shape=Shape((*case.shape.axes, (flag, 1)))), peak, hints)
            for flag in others
        ),
        ("with arrays that a cache kept from the call before", case, peak, hints - {"cold"}),
        ("with constant inputs, which are not read from memory", case, peak, hints | {"constant"}),
        ("as one of several calls in a single launch", case, peak, hints | {"fused"}),
        ("with 2:4 sparsity, its zeros counted", case, peak, hints | {"sparse"}),
    ]
    for words, other, of, known in trials:
        nearest = max(_limits_of(prediction.device, other, of, known), key=lambda limit: limit.least_s, default=None)
        if nearest and not _is_above(nearest, time_s, rounded):
            most = f"{format_flop_per_s(nearest.per_s)}, " if nearest.bound == "compute" else ""
            yield words if "fused" in known else f"{words} ({most}{format_seconds(nearest.least_s)} at least)"


def _precisions(prediction: Prediction) -> Iterator[tuple[str, Case, Peak]]:
    """Yield the formats that are no wider than the stated one, with the call in it and the peak of its units."""
    case = prediction.case
    row = row_of(prediction.device)
    bits = format_named(case.dtype).bits
    for other in (replace(case, dtype=dtype.name) for dtype in FORMATS.values() if dtype.bits <= bits):
        units = arithmetic(other, prediction.device)
        if other != case and units.support == "native" and units.peak:
            yield f"in {other.dtype}", other, units.peak
    rates = row.rates if row and operation_named(case.operation).is_matrix_product else {}
    for words, (dtype, column, clocked_as, products) in OTHER_PRODUCTS.items():
        if column in rates and (dtype == case.dtype or FORMATS[dtype].bits < min(bits, 16)):
            peak = Peak(clocked_as, "matrix", rates[column] / products, "datasheet", "")
            yield words, replace(case, dtype=dtype), peak


def _is_above(limit: DeviceLimit, time_s: float, rounded: float) -> bool:
    """Return whether a time is shorter than a limit leaves, however the limit and the stated figure are rounded."""
    return limit.least_s > time_s * (1 + max(ROUNDED[limit.bound], rounded))


def seconds_of(time: float | str) -> float:
    """Return a stated time.

    Raises:
        InvalidInput: it is none, or no time of a call.
    """
    found = read_seconds(time) if isinstance(time, str) else time
    if found is None or not SHORTEST_S <= found <= LONGEST_S:
        raise InvalidInput.of("time", time, "1ns to 1000000s, with the unit: 90us, 1.25 ms, 2s")
    return float(found)


def seconds_at(rate: float | str | None, case: Case) -> float:
    """Return the time of a call at a rate of arithmetic, or of its arrays moved once each.

    Raises:
        InvalidInput: it is no rate, or none of a call.
    """
    stated = read_rate(rate) if isinstance(rate, str) else (float(rate or 0), "FLOP/s")
    if stated is None:
        units = "FLOP/s and B/s with the prefixes k, M, G, T and P: 1.2PFLOP/s, 900 TFLOPS, 3.35TB/s"
        raise InvalidInput.of("rate", rate, units)
    amount = operation_named(case.operation).flop_count(case.shape) if stated[1] == "FLOP/s" else _byte_count(case)
    require(amount, "rate", rate, f"bytes per second, like 3TB/s: {case.operation} computes nothing")
    found = amount / stated[0] if stated[0] > 0 else inf
    if not SHORTEST_S <= found <= LONGEST_S:
        least, most = (f"{amount / seconds:.3g} {stated[1]}" for seconds in (LONGEST_S, SHORTEST_S))
        raise InvalidInput.of("rate", rate, f"{least} to {most}, where a call takes 1 ns to 1,000,000 s")
    return found


def judged(
    prediction: Prediction, time_s: float, rounded: float = 0.0, hints: Hints = frozenset()
) -> tuple[Verdict, str, DeviceLimit | None, tuple[str, ...]]:
    """Return the verdict on a time, its reason, the limit that it comes nearest to, and what else would explain it.

    Args:
        prediction: of what was called.
        time_s: of a call.
        rounded: of the stated figure, relative.
        hints: what else is known of the call.
    """
    device = prediction.device
    limits = _limits_of(device, prediction.case, prediction.peak, hints)
    nearest = max(limits, key=lambda limit: limit.least_s / (1 + max(ROUNDED[limit.bound], rounded)), default=None)
    if nearest and _is_above(nearest, time_s, rounded):
        possible = tuple(_explanations(prediction, time_s, rounded, hints))
        only = f"possible only {'; or '.join(possible)}" if possible else "no other precision or data would explain it"
        least = f"{format_seconds(nearest.least_s)} at least, {nearest.least_s / time_s:.3g} times the stated time"
        return "above the roof", f"{device.title}: {_most(nearest)}: {least}; {only}", nearest, possible
    known = prediction.interval_s
    if known is None:  # without a peak for its arithmetic
        why = f": {prediction.reason}" if prediction.reason else ""
        return "unknown", f"no limit of its arithmetic is known, and nothing is predicted{why}", nearest, ()
    of_calls = "" if device.kind == "cpu" else f" {CALLS_WORDS[prediction.calls]}"
    interval = f"nine in ten{of_calls} are predicted to take {format_interval(known, format_seconds)}"
    printed = [limit for limit in limits if limit.bound != "overhead"]
    if not printed:
        return "unknown", f"no limit of {device.title} is known; {interval}", nearest, ()
    above = [_above(roof, device, time_s) for roof in printed if time_s * roof.per_s < roof.amount]
    slow = f"{time_s / known[1]:.3g} times as long as the longest of these: " if time_s > known[1] else ""
    fast = "faster than is known, and below every limit: " if time_s < known[0] and not above else ""
    verdict: Verdict = "as good as known" if known[0] <= time_s <= known[1] else "possible"
    return verdict, "; ".join((*above, f"{slow}{fast}{interval}")), nearest, ()


def _most(roof: DeviceLimit) -> str:
    """Return what a device reaches at most, in words, with the source."""
    limit = _words(roof)
    if roof.headroom == 1.0 or roof.is_measured:
        return limit
    return f"{limit}, and {format_percent(roof.headroom - 1)} more at its highest clock"


def _words(roof: DeviceLimit) -> str:
    if roof.bound == "overhead":
        return f"a launch takes at least {format_seconds(roof.least_s)} ({roof.limit.source})"
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
    only_if = f"possible only if the clock ran above {clock} it is quoted at (zeros draw less power)"
    return f"{more} above the datasheet's peak: {only_if}: {_words(roof)}"


def _byte_count(case: Case) -> int:
    return operation_named(case.operation).byte_count(case.shape, format_named(case.dtype))
