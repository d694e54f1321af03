"""The way from a claim to its verdict, by rules: the strongest finding is the verdict.

A time is impossible when every variant of its card would have had to compute or to read memory faster than it can. A
claim contradicts itself when what is said disagrees with what is printed, or with what follows from it. A time that was
read before the device was done is no measurement. What disagrees with arithmetic, with the table of accelerators or
with a source is wrong. What is left was computed or measured here, by the right method, and agrees or does not; where
neither was done, it is possible.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from gpuexplore.analysis.utilization.best_results import exceeded_bandwidth, exceeded_peak
from gpuexplore.core import Result, format_bytes, format_bytes_per_s, format_flop_per_s, format_seconds, format_si
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.features.fact_check.analysis import Claim, ClaimFigure, Interval, interval_of
from gpuexplore.features.fact_check.analysis.measured import CARDS, NOT_NAMED, outcome
from gpuexplore.hardware import PEAK_FIELDS, RATE_CLASSES, Accelerator
from gpuexplore.operations import operation_named

Value = Interval | str
Origin = Literal["own", "here"]


def _flop_count(claim: Claim) -> Interval | None:
    """Return the FLOPs of what was timed, exact."""
    if not claim.operation or claim.shape is None:
        return None
    return _exact(operation_named(claim.operation).flop_count(claim.shape))


def _byte_count(claim: Claim) -> Interval | None:
    """Return the bytes that had to move at least, exact."""
    if claim.byte_count:
        return _exact(claim.byte_count)
    if not claim.operation or claim.shape is None:
        return None
    return _exact(operation_named(claim.operation).byte_count(claim.shape, DTYPES[claim.dtype]))


def _rate(claim: Claim) -> Interval | None:
    """Return the FLOP/s by the printed time."""
    return _over(_flop_count(claim), interval_of(claim.time_s))


def _share_of_promise(claim: Claim) -> Interval | None:
    promise = interval_of(claim.promise)  # a promise is what it is, however it is written
    return _over(_rate(claim), _exact((promise.low + promise.high) / 2) if promise else None)


def _lanes(claim: Claim) -> Interval | None:
    rate = {class_.name: class_ for class_ in RATE_CLASSES}[CARDS[claim.card][0].rate_class].rate("fp32")
    return _exact(rate / 2) if rate else None  # a multiply-add is 2 FLOPs


def _peak_flop_per_s(row: Accelerator, dtype: str) -> float | None:
    """Return the largest rate a device has for `dtype`; None where its units for that are unknown or absent."""
    columns = (column for (name, _), column in PEAK_FIELDS.items() if name == dtype)
    return max((row.rates[column] for column in columns if column in row.rates), default=None)


@cache
def _share_outside(claim: Claim) -> float:
    """Return the share of the elements of a product that the order of its sums moves out of allclose's tolerances."""
    random = np.random.default_rng(1)
    terms = claim.given["terms"]
    rows = 100  # of a product that is as long in its sums as the notebook's, and smaller
    left, right = (random.standard_normal(size, np.float32) for size in ((rows, terms), (terms, rows)))
    half = terms // 2
    return float(1 - np.isclose(left @ right, left[:, :half] @ right[:half] + left[:, half:] @ right[half:]).mean())


def _strides(claim: Claim) -> str:
    array = _counted(claim)
    return str([stride // array.itemsize for stride in array.strides])


def _transposed_view(claim: Claim) -> str:
    rows, columns = claim.given["sizes"]
    return str(np.ascontiguousarray(_counted(claim).T).reshape(rows, columns).tolist())


def _product_of_ones(claim: Claim) -> Interval:
    left, right = (np.ones(sizes, np.float32) for sizes in (claim.given["left"], claim.given["right"]))
    product = left @ right
    return Interval(float(product.min()), float(product.max()))


def _counted(claim: Claim) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """Return the elements first, first + 1, ... in the sizes of the claim."""
    sizes = claim.given["sizes"]
    first = claim.given.get("first", 1)
    return np.arange(first, first + int(np.prod(sizes))).reshape(sizes)


# How a figure is computed: in words, by what, None where the claim does not have what it takes, and whether it follows
# from the notebook's `own` numbers, or `here` from shapes, our operations, the table of accelerators or NumPy. What is
# not listed is compared only between what was said, what was printed and what a source has.
QUANTITIES: Mapping[str, tuple[str, Callable[[Claim], Value | None], Origin]] = {
    "flop_count": ("FLOPs by the shapes", _flop_count, "here"),
    "rate": ("FLOP/s by FLOPs and time", _rate, "own"),
    "speedup": (
        "ratio of the printed times",
        lambda claim: _over(interval_of(claim.compared_s), interval_of(claim.time_s)),
        "own",
    ),
    "share_of_promise": ("share of the peak that the notebook used", _share_of_promise, "own"),
    "blocks": (
        "elements over threads, rounded up",
        lambda claim: _exact(-(-claim.given["elements"] // claim.given["threads"])),
        "here",
    ),
    "lanes": ("fp32 lanes of a multiprocessor of that card", _lanes, "here"),
    "fp64_slowdown": (
        "fp32 rate over fp64 rate of that card",
        lambda claim: _exact(round(CARDS[claim.card][0].rates["fp32"] / CARDS[claim.card][0].rates["fp64"], 1)),
        "here",
    ),
    "native": (
        "the card has units for the dtype",
        lambda claim: str(any(_peak_flop_per_s(variant, claim.dtype) for variant in CARDS[claim.card])),
        "here",
    ),
    "allclose": (
        "numpy.allclose of the two",
        lambda claim: str(
            np.allclose(np.float32(claim.given["left"]), np.float32(claim.given["right"]), atol=claim.given["atol"])
        ),
        "here",
    ),
    "allclose with default tolerances": (
        "numpy.allclose of a product and the same one summed in another order, default tolerances",
        lambda claim: str(_share_outside(claim) == 0),
        "here",
    ),
    "share_outside_allclose": (
        "share of elements outside the tolerances when summed in the other order",
        lambda claim: _exact(_share_outside(claim)),
        "here",
    ),
    "strides": ("strides by NumPy", _strides, "here"),
    "element": ("the element by NumPy", lambda claim: _exact(int(_counted(claim)[tuple(claim.given["at"])])), "here"),
    "transposed_view": ("the transpose, copied and viewed, by NumPy", _transposed_view, "here"),
    "product_of_ones": (
        "every element of the product by NumPy",
        _product_of_ones,
        "here",
    ),
}


def _computed(claim: Claim, quantity: str) -> Value | None:
    """Return what a quantity should have been; None of one that is not listed, or that lacks what it takes."""
    if quantity not in QUANTITIES:
        return None
    _, compute, _ = QUANTITIES[quantity]
    return compute(claim)


def _exact(value: float) -> Interval:
    return Interval(value, value)


def _over(above: Interval | None, below: Interval | None) -> Interval | None:
    if above is None or below is None or below.low <= 0:
        return None
    return Interval(above.low / below.high, above.high / below.low)


FindingName = Literal["impossible", "contradicts itself", "not a measurement", "wrong"]
Verdict = FindingName | Literal["not confirmed here", "possible", "confirmed here"]
FINDINGS: tuple[FindingName, ...] = (
    "impossible",
    "contradicts itself",
    "not a measurement",
    "wrong",
)  # strongest first


Finding = tuple[FindingName | None, str]  # what is the matter with a claim, if anything, and the sentence that says so


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim and its verdict.

    Attributes:
        findings: what speaks against it, the strongest first.
        evidence: a sentence for each of them, then what else is known.
    """

    claim: Claim
    verdict: Verdict
    findings: tuple[FindingName, ...]
    evidence: tuple[str, ...]


def judge(claim: Claim, results: Sequence[Result] = ()) -> Judgement:
    """Return the verdict on a claim, with every finding and its evidence.

    Args:
        claim: as its notebook has it.
        results: measured here, the newest first.
    """
    said: list[Finding] = list(_limits(claim))
    if claim.waited is False:
        why = "The clock was read before the device was done: the launch was timed, not the work"
        said.append(("not a measurement", why))
    confirmed = False
    for figure in claim.figures:
        compared = list(_compared(claim, figure))
        was_computed = bool(figure.said or figure.printed) and _computed(claim, figure.quantity) is not None
        confirmed = confirmed or (was_computed and all(name is None for name, _ in compared))
        said += compared
    outcomes = [outcome(check, claim, results) for check in claim.checks]
    said += [(None, evidence) for _, evidence in outcomes]
    found = [(name, evidence) for rank in FINDINGS for name, evidence in said if name == rank]
    notes = [evidence for name, evidence in said if name is None]
    agreed = {confirmed or None, *(agrees for agrees, _ in outcomes)}
    verdict: Verdict = "confirmed here" if True in agreed else "possible"
    if found:
        verdict = found[0][0]
    elif False in agreed:  # one disagreement is enough
        verdict = "not confirmed here"
    return Judgement(claim, verdict, tuple(name for name, _ in found), (*(evidence for _, evidence in found), *notes))


def _limits(claim: Claim) -> Iterator[Finding]:
    """Say which variants of the card the printed time is impossible on: a finding where that is all of a named one."""
    if not claim.card or not claim.time_s:
        return
    limits = {variant: _above_limit(claim, variant) for variant in CARDS[claim.card]}
    above = [f"impossible on a {variant.name}, {why}" for variant, why in limits.items() if why]
    below = [variant.name for variant, why in limits.items() if not why]
    if claim.card == NOT_NAMED:
        yield None, "The notebook does not name its card"
    elif not below:
        yield "impossible", f"{_done(claim)}: {'; '.join(above)}"
        return
    others = ", ".join(below) or "none of the cards that were checked"
    yield None, f"{_done(claim)}: {'; '.join([*above, f'not excluded on: {others}'])}"


def _above_limit(claim: Claim, variant: Accelerator) -> str | None:
    """Return the limit that the time exceeds, however it was rounded; None where it exceeds none."""
    flops = _flop_count(claim)
    moved = _byte_count(claim)
    time_s = interval_of(claim.time_s)
    if not (flops and moved and time_s):
        return None
    return exceeded_peak(flops.low, time_s.high, _peak_flop_per_s(variant, claim.dtype)) or exceeded_bandwidth(
        moved.low, time_s.high, variant.bandwidth_bytes_per_s, variant.cache_bytes
    )


def _done(claim: Claim) -> str:
    flops = _flop_count(claim)
    moved = _byte_count(claim)
    time_s = interval_of(claim.time_s)
    by_flops = _rate(claim)
    by_bytes = _over(_byte_count(claim), interval_of(claim.time_s))
    if not (flops and moved and time_s and by_flops and by_bytes):
        return ""
    return (
        f"{format_si(flops.low, 'FLOP')} and {format_bytes(moved.low)} in {format_seconds(_middle(time_s))} are "
        f"{format_flop_per_s(_middle(by_flops))} and {format_bytes_per_s(_middle(by_bytes))}"
    )


def _compared(claim: Claim, figure: ClaimFigure) -> Iterator[Finding]:
    """Compare what was said, printed, computed and is known of one quantity, each pair once."""
    if figure.said and figure.printed and not _agree(_read(figure.said), _read(figure.printed)):
        yield "contradicts itself", f"{figure.quantity}: said {figure.said}, printed {figure.printed}"
    stated = [text for text in (figure.printed, figure.said) if text]
    computed = _computed(claim, figure.quantity)
    if computed is not None:
        words, _, origin = QUANTITIES[figure.quantity]
        name: FindingName = "contradicts itself" if origin == "own" else "wrong"
        off = [text for text in stated if not _agree(_read(text), computed)]
        found = f"{words}: {_show(computed)}"
        yield (name, f"{found}, not {off[0]}") if off else (None, found)
    if figure.known:
        off = [text for text in stated if not _agree(_read(text), _read(figure.known))]
        found = f"{figure.quantity}: {figure.known} ({figure.source})"
        yield ("wrong", f"{found}, not {off[0]}") if off else (None, found)


def _read(text: str) -> Value:
    return interval_of(text) or text


def _agree(stated: Value, other: Value) -> bool:
    if isinstance(stated, Interval) and isinstance(other, Interval):
        return stated.meets(other)
    return stated == other


def _show(value: Value) -> str:
    if isinstance(value, str):
        return value
    low = _number(value.low)
    high = _number(value.high)
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:.4g}".replace("e+", "e")


def _middle(interval: Interval) -> float:
    return (interval.low + interval.high) / 2
