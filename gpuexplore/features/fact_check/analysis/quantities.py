"""Figures as they should have been: computed from the claim's own printed numbers, or here from what it is about.

A quantity that is not listed is compared only between what was said, what was printed and what a source has.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.features.fact_check.analysis.claim import Claim, Interval, interval_of
from gpuexplore.features.fact_check.analysis.measured import CARDS
from gpuexplore.hardware.formula import RATE_CLASSES
from gpuexplore.operations import operation_named

SEED = 1
ROWS = 100  # of a product that is as long in its sums as the notebook's, and smaller
Value = Interval | str
Origin = Literal["own", "here"]


@dataclass(frozen=True, slots=True)
class ClaimQuantity:
    """How a figure is computed.

    Attributes:
        words: how one says it, for "<words>: 6".
        compute: None where the claim does not have what it takes.
        origin: `own` follows from numbers the notebook printed, `here` from shapes, our operations and the table of
            accelerators, or from running NumPy.
    """

    words: str
    compute: Callable[[Claim], Value | None]
    origin: Origin


def flop_count(claim: Claim) -> Interval | None:
    """Return the FLOPs of what was timed, exact."""
    if not claim.operation or claim.shape is None:
        return None
    return _exact(operation_named(claim.operation).flop_count(claim.shape))


def byte_count(claim: Claim) -> Interval | None:
    """Return the bytes that had to move at least, exact."""
    if claim.byte_count:
        return _exact(claim.byte_count)
    if not claim.operation or claim.shape is None:
        return None
    return _exact(operation_named(claim.operation).byte_count(claim.shape, DTYPES[claim.dtype]))


def rate(claim: Claim) -> Interval | None:
    """Return the FLOP/s by the printed time."""
    return _over(flop_count(claim), interval_of(claim.time_s))


def bytes_per_s(claim: Claim) -> Interval | None:
    """Return the bytes/s by the printed time."""
    return _over(byte_count(claim), interval_of(claim.time_s))


def speedup(claim: Claim) -> Interval | None:
    """Return how many times as long the other took, by the printed times."""
    return _over(interval_of(claim.compared_s), interval_of(claim.time_s))


def _share_of_promise(claim: Claim) -> Interval | None:
    promise = interval_of(claim.promise)  # a promise is what it is, however it is written
    return _over(rate(claim), _exact((promise.low + promise.high) / 2) if promise else None)


def _blocks(claim: Claim) -> Interval:
    return _exact(-(-claim.given["elements"] // claim.given["threads"]))


def _lanes(claim: Claim) -> Interval | None:
    classes = {class_.name: class_ for class_ in RATE_CLASSES}
    rate = classes[CARDS[claim.card][0].row.rate_class].rate("fp32")
    return _exact(rate / 2) if rate else None  # a multiply-add is 2 FLOPs


def _fp64_slowdown(claim: Claim) -> Interval | None:
    rates = CARDS[claim.card][0].row.rates
    return _exact(round(rates["fp32"] / rates["fp64"], 1))


def _native(claim: Claim) -> str:
    return str(any(variant.peak_flop_per_s(claim.dtype) for variant in CARDS[claim.card]))


def _allclose(claim: Claim) -> str:
    given = claim.given
    return str(bool(np.allclose(np.float32(given["left"]), np.float32(given["right"]), atol=given["atol"])))


def _allclose_reordered(claim: Claim) -> str:
    return str(_share_outside(claim) == 0)


def _share_outside_allclose(claim: Claim) -> Interval:
    return _exact(_share_outside(claim))


@cache
def _share_outside(claim: Claim) -> float:
    """Return the share of the elements of a product that the order of its sums moves out of allclose's tolerances."""
    random, terms = np.random.default_rng(SEED), claim.given["terms"]
    left, right = (random.standard_normal(size, np.float32) for size in ((ROWS, terms), (terms, ROWS)))
    half = terms // 2
    in_halves = left[:, :half] @ right[:half] + left[:, half:] @ right[half:]
    return float(1 - np.isclose(left @ right, in_halves).mean())


def _strides(claim: Claim) -> str:
    array = _counted(claim)
    return str([stride // array.itemsize for stride in array.strides])


def _element(claim: Claim) -> Interval:
    return _exact(int(_counted(claim)[tuple(claim.given["at"])]))


def _transposed_view(claim: Claim) -> str:
    rows, columns = claim.given["sizes"]
    return str(np.ascontiguousarray(_counted(claim).T).reshape(rows, columns).tolist())


def _product_of_ones(claim: Claim) -> Interval:
    left, right = (np.ones(sizes, np.float32) for sizes in (claim.given["left"], claim.given["right"]))
    product = left @ right
    return Interval(float(product.min()), float(product.max()))


def _counted(claim: Claim) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """Return the elements first, first + 1, ... in the sizes of the claim."""
    sizes, first = claim.given["sizes"], claim.given.get("first", 1)
    return np.arange(first, first + int(np.prod(sizes))).reshape(sizes)


QUANTITIES: Mapping[str, ClaimQuantity] = {
    "flop_count": ClaimQuantity("FLOPs by the shapes", flop_count, "here"),
    "rate": ClaimQuantity("FLOP/s by FLOPs and time", rate, "own"),
    "speedup": ClaimQuantity("ratio of the printed times", speedup, "own"),
    "share_of_promise": ClaimQuantity("share of the rate that the notebook divides by", _share_of_promise, "own"),
    "blocks": ClaimQuantity("elements over threads, rounded up", _blocks, "here"),
    "lanes": ClaimQuantity("fp32 lanes of a multiprocessor of that card", _lanes, "here"),
    "fp64_slowdown": ClaimQuantity("fp32 rate over fp64 rate of that card", _fp64_slowdown, "here"),
    "native": ClaimQuantity("the card has units for the dtype", _native, "here"),
    "allclose": ClaimQuantity("numpy.allclose of the two", _allclose, "here"),
    "allclose with default tolerances": ClaimQuantity(
        "numpy.allclose of a product and the same one summed in another order, default tolerances",
        _allclose_reordered,
        "here",
    ),
    "share_outside_allclose": ClaimQuantity(
        "share of its elements that the other order moves out of the tolerances", _share_outside_allclose, "here"
    ),
    "strides": ClaimQuantity("strides by NumPy", _strides, "here"),
    "element": ClaimQuantity("the element by NumPy", _element, "here"),
    "transposed_view": ClaimQuantity("the transpose, copied and viewed, by NumPy", _transposed_view, "here"),
    "product_of_ones": ClaimQuantity("every element of the product by NumPy", _product_of_ones, "here"),
}


def _exact(value: float) -> Interval:
    return Interval(value, value)


def _over(above: Interval | None, below: Interval | None) -> Interval | None:
    if above is None or below is None or below.low <= 0:
        return None
    return Interval(above.low / below.high, above.high / below.low)
