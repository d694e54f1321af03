"""Measurements made here that bear out a claim or do not: the cases of its checks, and what their results amount to.

A result counts where it was measured under the conditions of the check, on the kind of device that the claim is about,
and on that very card where the claim names one. What disturbed it widens its interval; where that straddles what was
expected, the check decides nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from gpuexplore.analysis.utilization import default_peak, device_of, flop_count, is_ranked, shape_label
from gpuexplore.analysis.verdict import Estimate, Words, compare, rate_of, ratio_of
from gpuexplore.core.model import DEFAULT_BUDGET_S, Device, Experiment, Result
from gpuexplore.features.fact_check.analysis import CheckSide, Claim, ClaimCheck, MeasuredQuantity, interval_of
from gpuexplore.hardware import Accelerator, accelerator_named, same_device
from gpuexplore.operations import operation_named

# The cards that claims are about, each with every variant that its name may stand for: the limits of all count.


NOT_NAMED = "not named"


def _as_listed(key: str) -> Accelerator:
    row = accelerator_named(key)
    assert row, key
    return row


def _laptop_gtx_1650(memory: str, bandwidth_bytes_per_s: float) -> Accelerator:
    """Return a laptop's variant: the notebook printed 16 multiprocessors (B1), whose clock is at most the desktop's.

    Both memories go by one name: see the row's notes.
    """
    row = _as_listed("gtx-1650")
    factor = 16 / (row.multiprocessors or 16)
    return replace(
        row,
        name=f"GeForce GTX 1650 of a laptop ({memory})",
        multiprocessors=16,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        rates={column: rate * factor for column, rate in row.rates.items()},
    )


CARDS: Mapping[str, tuple[Accelerator, ...]] = {
    "GTX 1650": (_as_listed("gtx-1650"), _laptop_gtx_1650("GDDR5", 128e9), _laptop_gtx_1650("GDDR6", 192e9)),
    "Tesla T4": (_as_listed("t4"),),
    # What Colab lends, and what is faster.
    NOT_NAMED: tuple(map(_as_listed, ("t4", "v100-sxm2-16gb", "a100-sxm4-40gb", "l4", "h100-sxm5-80gb"))),
}


WORDS = Words(
    below="less than claimed", within="as claimed", above="more than claimed", question="whether it is as claimed"
)


def outcome(check: ClaimCheck, claim: Claim, results: Sequence[Result]) -> tuple[bool | None, str]:
    """Return whether `results`, the newest first, agree with what a check expects, and the sentence that says so.

    None where nothing was measured, or the interval does not decide.
    """
    measured = _newest_together(results, check, claim)
    value = MEASURED[check.quantity](measured) if measured else None
    expected = interval_of(check.expected)
    subject = _subject(check)
    if value is None or expected is None:
        return None, f"Not measured here: {subject}{_on_card(claim, check)}"
    relation = f"Measured here: {subject}: {value.range}; claimed: {check.expected}"
    verdict = compare(value, expected.low, expected.high, WORDS)
    if verdict.relation is None:
        helps = f"; {verdict.would_decide}" if verdict.would_decide else ""
        return None, f"{relation}; the interval does not decide{helps}"
    certainty = f"; {verdict.certainty} {getattr(WORDS, verdict.relation)}" if value.low != value.high else ""
    return {"below": False, "within": True, "above": False}[verdict.relation], f"{relation}{certainty}"


def experiments(claim: Claim, devices: Sequence[Device]) -> tuple[Experiment, ...]:
    """Return what is to be measured on `devices` for the checks of a claim; none of a check that lacks a device."""
    found: dict[Experiment, None] = {}
    for check in claim.checks:
        chosen = [next((device for device in devices if _suits(device, side, claim)), None) for side in check.sides]
        if None in chosen:
            continue
        for device in dict.fromkeys(device_of_side for device_of_side in chosen if device_of_side is not None):
            sides = [side for side, device_of_side in zip(check.sides, chosen, strict=True) if device_of_side == device]
            names = tuple(dict.fromkeys(side.implementation for side in sides))
            dtypes = tuple(dict.fromkeys(side.dtype for side in sides))
            found[Experiment(check.operation, (check.shape,), dtypes, names, (device.id,), check.options)] = None
    return tuple(found)


def _suits(device: Device | None, side: CheckSide, claim: Claim) -> bool:
    """Return whether what `device` says is valid for the claim: the card that it names, or any of that kind."""
    if device is None or device.is_simulated or device.kind != side.device:
        return False
    if side.device == "cpu" or not _is_named(claim):
        return True
    return device.spec_key in {variant.key for variant in CARDS[claim.card]}


def _is_named(claim: Claim) -> bool:
    return bool(claim.card) and claim.card != NOT_NAMED


def _newest_together(results: Sequence[Result], check: ClaimCheck, claim: Claim) -> list[Result]:
    """Return the newest result of every side, those of one kind of device on one device; empty without."""
    for first in _fitting(results, check.sides[0], check, claim):
        found = [first]
        for side in check.sides[1:]:
            fitting = _fitting(results, side, check, claim)
            found += list(islice((result for result in fitting if _belongs(result, found)), 1))
        if len(found) == len(check.sides):
            return found
    return []


def _fitting(results: Sequence[Result], side: CheckSide, check: ClaimCheck, claim: Claim) -> Iterator[Result]:
    """Yield the results that are of a side of a check, the newest first."""
    wanted = (check.operation, check.shape, side.dtype, side.implementation)
    options = replace(check.options, budget_s=DEFAULT_BUDGET_S)
    for result in results:
        case = result.case
        if (
            (case.operation, case.shape, case.dtype, case.implementation) == wanted
            and replace(case.options, budget_s=DEFAULT_BUDGET_S) == options
            and _suits(device_of(result), side, claim)
            and (is_ranked(result) or check.quantity == "relative error")  # which no time spoils
        ):
            yield result


def _belongs(result: Result, others: Sequence[Result]) -> bool:
    """Return whether a result is of the same device as those of others of its kind: names are shared by processors."""
    device = device_of(result)
    known = [device_of(other) for other in others]
    return device is not None and all(
        other is not None and (other.kind != device.kind or same_device(other, device)) for other in known
    )


def _rate(results: Sequence[Result]) -> Estimate | None:
    (result,) = results
    return rate_of(result, flop_count(result.case), "FLOP/s")


def _mfu(results: Sequence[Result]) -> Estimate | None:
    rate = _rate(results)
    peak = default_peak(results[0])
    return rate.scaled(1 / peak.flop_per_s, "fraction") if rate and peak else None


def _relative_error(results: Sequence[Result]) -> Estimate | None:
    """Return the largest of all sides; it has no spread."""
    errors = [result.accuracy.relative_error if result.accuracy else None for result in results]
    known = [error for error in errors if error is not None]
    if not known or len(known) < len(errors):
        return None
    return Estimate(max(known), max(known), max(known), "relative error", "the largest element")


MEASURED: Mapping[MeasuredQuantity, Callable[[Sequence[Result]], Estimate | None]] = {  # of a check's sides, in order
    "time ratio": lambda results: ratio_of(*results, same_run=False),
    "rate": _rate,
    "MFU": _mfu,
    "relative error": _relative_error,
}


def _subject(check: ClaimCheck) -> str:
    """Return e.g. ``time ratio of matrix-vector product 100,000 × 100, numpy on cpu over torch on cuda in fp32``."""
    dtypes = dict.fromkeys(side.dtype for side in check.sides)
    names = [
        f"{side.implementation} on {side.device}{f' in {side.dtype}' if len(dtypes) > 1 else ''}"
        for side in check.sides
    ]
    shared = f" in {check.sides[0].dtype}" if len(dtypes) == 1 else ""
    data = "" if check.data == "normal" else f" with inputs of {check.data}"
    title = operation_named(check.operation).title.lower()
    joint = " over " if check.quantity == "time ratio" else " and "
    return f"{check.quantity} of {title} {shape_label(check.shape)}{data}, {joint.join(names)}{shared}"


def _on_card(claim: Claim, check: ClaimCheck) -> str:
    needs_card = _is_named(claim) and any(side.device == "cuda" for side in check.sides)
    return f"; the device has to be a {claim.card}" if needs_card else ""
