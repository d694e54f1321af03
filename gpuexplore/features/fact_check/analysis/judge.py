"""The way from a claim to its verdict, by rules: the strongest finding is the verdict.

A time is impossible when every variant of its card would have had to compute or to read memory faster than it can. A
claim contradicts itself when what is said disagrees with what is printed, or with what follows from it. A time that was
read before the device was done is no measurement. What disagrees with arithmetic, with the table of accelerators or
with a source is wrong. What is left was computed or measured here, by the right method, and agrees or does not; where
neither was done, it is possible.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from gpuexplore.analysis.utilization.best_results import exceeded_bandwidth, exceeded_peak
from gpuexplore.core.model import Result
from gpuexplore.core.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_seconds, format_si
from gpuexplore.features.fact_check.analysis.claim import Claim, ClaimFigure, Interval, claims, interval_of
from gpuexplore.features.fact_check.analysis.measured import CARDS, NOT_NAMED, Variant, outcome
from gpuexplore.features.fact_check.analysis.quantities import (
    QUANTITIES,
    Value,
    byte_count,
    bytes_per_s,
    flop_count,
    rate,
)

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
    said: list[Finding] = [*_limits(claim), *_clock(claim)]
    confirmed = False
    for figure in claim.figures:
        compared = list(_compared(claim, figure))
        confirmed = confirmed or _is_confirmed(compared, claim, figure)
        said += compared
    outcomes = [outcome(check, claim, results) for check in claim.checks]
    said += [(None, evidence) for _, evidence in outcomes]
    found = [(name, evidence) for rank in FINDINGS for name, evidence in said if name == rank]
    notes = [evidence for name, evidence in said if name is None]
    agreed = {True} if confirmed else set[bool | None]()
    verdict = found[0][0] if found else _without_findings(agreed | {agrees for agrees, _ in outcomes})
    return Judgement(claim, verdict, tuple(name for name, _ in found), (*(evidence for _, evidence in found), *notes))


def _without_findings(agreed: Set[bool | None]) -> Verdict:
    """Return the verdict where nothing speaks against a claim but what was measured: one disagreement is enough."""
    if False in agreed:
        return "not confirmed here"
    return "confirmed here" if True in agreed else "possible"


def judgements(results: Sequence[Result] = ()) -> tuple[Judgement, ...]:
    """Return the verdict on every claim, in the order of the notebooks."""
    return tuple(judge(claim, results) for claim in claims())


def _limits(claim: Claim) -> Iterator[Finding]:
    """Say which variants of the card the printed time is impossible on: a finding where that is all of a named one."""
    if not claim.card or not claim.time_s:
        return
    limits = {variant: _above_limit(claim, variant) for variant in CARDS[claim.card]}
    above = [f"impossible on a {variant.name}, {why}" for variant, why in limits.items() if why]
    below = [variant.name for variant, why in limits.items() if not why]
    if claim.card == NOT_NAMED:
        yield None, "The card is not named"
    elif not below:
        yield "impossible", f"{_done(claim)}: {'; '.join(above)}"
        return
    yield None, f"{_done(claim)}: {'; '.join([*above, f'not excluded on: {_listed(below)}'])}"


def _above_limit(claim: Claim, variant: Variant) -> str | None:
    """Return the limit that the time exceeds, however it was rounded; None where it exceeds none."""
    flops, moved, time_s = flop_count(claim), byte_count(claim), interval_of(claim.time_s)
    if not (flops and moved and time_s):
        return None
    above_peak = exceeded_peak(flops.low, time_s.high, variant.peak_flop_per_s(claim.dtype))
    return above_peak or exceeded_bandwidth(
        moved.low, time_s.high, variant.bandwidth_bytes_per_s, variant.row.cache_bytes
    )


def _done(claim: Claim) -> str:
    flops, moved, time_s = flop_count(claim), byte_count(claim), interval_of(claim.time_s)
    by_flops, by_bytes = rate(claim), bytes_per_s(claim)
    if not (flops and moved and time_s and by_flops and by_bytes):
        return ""
    return (
        f"{format_si(flops.low, 'FLOP')} and {format_bytes(moved.low)} in {format_seconds(_middle(time_s))} are "
        f"{format_flop_per_s(_middle(by_flops))} and {format_bytes_per_s(_middle(by_bytes))}"
    )


def _clock(claim: Claim) -> Iterator[Finding]:
    if claim.waited is False:
        why = "The clock was read before the device was done: what was timed is the launch, not the work"
        yield "not a measurement", why


def _compared(claim: Claim, figure: ClaimFigure) -> Iterator[Finding]:
    """Compare what was said, printed, computed and is known of one quantity, each pair once."""
    if figure.said and figure.printed and not _agree(_read(figure.said), _read(figure.printed)):
        yield "contradicts itself", f"{figure.quantity}: said {figure.said}, printed {figure.printed}"
    stated = [text for text in (figure.printed, figure.said) if text]
    quantity = QUANTITIES.get(figure.quantity)
    computed = quantity.compute(claim) if quantity else None
    if quantity and computed is not None:
        name: FindingName = "contradicts itself" if quantity.origin == "own" else "wrong"
        off = [text for text in stated if not _agree(_read(text), computed)]
        found = f"{quantity.words}: {_show(computed)}"
        yield (name, f"{found}, not {off[0]}") if off else (None, found)
    if figure.known:
        off = [text for text in stated if not _agree(_read(text), _read(figure.known))]
        found = f"{figure.quantity}: {figure.known} ({figure.source})"
        yield ("wrong", f"{found}, not {off[0]}") if off else (None, found)


def _is_confirmed(compared: Sequence[Finding], claim: Claim, figure: ClaimFigure) -> bool:
    quantity = QUANTITIES.get(figure.quantity)
    was_stated = bool(figure.said or figure.printed)
    was_computed = was_stated and quantity is not None and quantity.compute(claim) is not None
    return was_computed and all(name is None for name, _ in compared)


def _read(text: str) -> Value:
    return interval_of(text) or text


def _agree(stated: Value, other: Value) -> bool:
    if isinstance(stated, Interval) and isinstance(other, Interval):
        return stated.meets(other)
    return stated == other


def _show(value: Value) -> str:
    if isinstance(value, str):
        return value
    low, high = _number(value.low), _number(value.high)
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:.4g}".replace("e+", "e")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none of those that were looked at"


def _middle(interval: Interval) -> float:
    return (interval.low + interval.high) / 2
