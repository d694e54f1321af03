"""What a what-if means, in sentences: the fastest format, what it costs in accuracy, and what stands against others."""

from collections.abc import Sequence

from gpuexplore.analysis.model import Summary
from gpuexplore.analysis.prediction import INTERVAL
from gpuexplore.analysis.verdict import Estimate, compare
from gpuexplore.analysis.what_if.what_if import Span, WhatIf
from gpuexplore.dtypes import format_named
from gpuexplore.model import Origin
from gpuexplore.units import (
    format_bytes,
    format_flop_per_s,
    format_interval,
    format_multiple,
    format_seconds,
)

EVEN = 1.05  # speedups nearer to 1 than this are called equal


def summarize(rows: Sequence[WhatIf], *, baseline: str) -> Summary:
    """Return the headline and the details for the rows of one device; a missing time is explained, never guessed.

    Args:
        baseline: the format speedups are against.
    """
    details = [*_impossible(rows), *_unlike(rows), *_memory(rows), *_notes(rows)]
    return Summary(_headline(rows, baseline), tuple(details))


def _headline(rows: Sequence[WhatIf], baseline: str) -> str:
    if not rows:
        return "Choose at least one dtype."
    place = f"On {rows[0].device.title}"
    others = [row for row in rows if row.speedup and row.dtype != baseline]
    best = max(others, key=lambda other: other.speedup.value if other.speedup else 0.0, default=None)
    if best is not None and best.speedup is not None:
        return f"{place}, {best.dtype} {_compared(best, best.speedup, baseline)}{_loss(best, rows, baseline)}."
    wrong = next((row for row in rows if row.dtype == baseline and row.impossible), None)
    if wrong:
        return f"{place}, the time entered for {baseline} is impossible, so nothing is compared with it."
    timed = next((row for row in rows if row.credible_time), None)
    if timed and timed.time:
        return f"{place}, {timed.dtype} {_verb(timed, 'takes')} {format_seconds(timed.time.value)}; nothing to compare."
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return f"{place}, no time is known: {'; '.join(reasons) or 'nothing like it was ever measured'}."


def _compared(row: WhatIf, speedup: Span, baseline: str) -> str:
    if 1 / EVEN < speedup.value < EVEN:
        return f"{_verb(row, 'is')} no faster than {baseline}"
    if speedup.value < 1:
        slower = Span(1 / speedup.value, 1 / speedup.high, 1 / speedup.low)
        return f"{_verb(row, 'is')} the fastest other dtype, and {_times(slower)} as slow as {baseline}{_range(slower)}"
    return f"{_verb(row, 'is')} {_times(speedup)} as fast as {baseline}{_range(speedup)}"


def _verb(row: WhatIf, verb: str) -> str:
    infinitive = {"is": "be", "takes": "take"}[verb]
    return f"is predicted to {infinitive}" if row.origin is Origin.PREDICTED else verb


def _times(ratio: Span) -> str:
    return f"{format_multiple(ratio.value)} times"


def _range(ratio: Span) -> str:
    if ratio.low == ratio.high:
        return ""
    told = compare(Estimate(ratio.value, ratio.low, ratio.high, "times", "what-if"), 1.0).told
    undecided = "" if told else "; which is faster cannot be told"
    return f" ({format_interval((ratio.low, ratio.high), format_multiple)}{undecided})"


def _loss(row: WhatIf, rows: Sequence[WhatIf], baseline: str) -> str:
    base = next((row for row in rows if row.dtype == baseline), None)
    if base is None or not base.error or not row.error:
        return ""
    factor = row.error / base.error
    if factor >= 1:
        return f", at {format_multiple(factor)} times the error"
    return f", at 1/{format_multiple(1 / factor)} of the error"


def _impossible(rows: Sequence[WhatIf]) -> list[str]:
    """Return which entered times cannot be, and by which limit."""
    return [
        f"**{row.dtype}** in {format_seconds(row.time.value)} is impossible: {row.impossible}. It is not compared."
        for row in rows
        if row.impossible and row.time
    ]


def _unlike(rows: Sequence[WhatIf]) -> list[str]:
    """Return why some formats are not native, each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.support != "native" or row.time is None:
            kind = row.support if row.support != "native" else "unknown"
            found.setdefault((kind, row.reason or "nobody knows why"), []).append(row.dtype)
    return [f"**{' and '.join(names)}**, {kind}: {reason}." for (kind, reason), names in found.items()]


def _memory(rows: Sequence[WhatIf]) -> list[str]:
    words = {False: "does not fit", None: "may not fit"}
    return [
        f"**{row.dtype}** {words[row.fits]}: all its arrays take {format_bytes(row.memory_bytes)}, "
        f"and the memory is {format_bytes(row.device.memory_bytes)}."
        for row in rows
        if row.fits is not True and row.device.memory_bytes is not None
    ]


def _notes(rows: Sequence[WhatIf]) -> list[str]:
    """Return what a reader should know of some formats, each note once."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes if row.time else ():
            found.setdefault(note, []).append(row.dtype)
    return [f"**{' and '.join(names)}**: {note}." for note, names in found.items()]


def explain_entered(rows: Sequence[WhatIf], *, baseline: str) -> list[str]:
    """Return why an entered time in an emulated format is longer than the baseline's, and what would be faster."""
    return [
        f"**{row.dtype}** took {format_multiple(1 / row.speedup.value)} times as long as {baseline}: "
        f"{row.reason}.{_instead(row, rows)}"
        for row in rows
        if row.origin is Origin.ENTERED and row.support == "emulated" and row.speedup and row.speedup.value < 1
    ]


def _instead(row: WhatIf, rows: Sequence[WhatIf]) -> str:
    """Return the fastest format with units of its own that is stored in no more bytes."""
    most_bits = format_named(row.dtype).bits
    native = [
        row
        for row in rows
        if row.support == "native" and row.credible_time and format_named(row.dtype).bits <= most_bits
    ]
    best = min(native, key=lambda row: row.time.value if row.time else 0.0, default=None)
    if best is None or best.time is None:
        return ""
    peak = f", with a peak of {format_flop_per_s(best.peak.flop_per_s)}" if best.peak else ""
    time = format_interval((best.time.low, best.time.high), format_seconds)
    return f" **{best.dtype}** has units of its own{peak}: it {_verb(best, 'takes')} {time}."


def interval_words() -> str:
    """Return what the intervals of predictions are."""
    return f"{100 * INTERVAL:g} % prediction intervals"
