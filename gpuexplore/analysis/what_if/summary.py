"""The meaning of a what-if: the fastest format, what it costs, and times compared with those a visitor entered."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from gpuexplore.analysis.model import Summary
from gpuexplore.analysis.prediction import UncertainValue
from gpuexplore.analysis.utilization.peak_sources import best_published
from gpuexplore.analysis.verdict import Estimate, compare
from gpuexplore.analysis.what_if.what_if import WhatIf
from gpuexplore.analysis.what_if.workload import MOST_NAMED, Workload
from gpuexplore.core import (
    InvalidInput,
    Origin,
    Peak,
    format_bytes,
    format_flop_per_s,
    format_interval,
    format_multiple,
    format_seconds,
    read_number,
    require,
)
from gpuexplore.core.dtypes import format_named
from gpuexplore.hardware import accelerator_named, near_names

# Values entered by a visitor: times, promised peaks and prices, and the MFU relative to each peak.


@dataclass(frozen=True, slots=True)
class EnteredResult:
    """One time relative to every peak that is named for its dtype.

    Attributes:
        row: the time, and the peak of the arithmetic that ran.
        flop_per_s: what it amounts to.
        promised: the peak the visitor entered, FLOP/s.
        published: the best result published on this device in this dtype; None where it is this very time.
        known_as: that published result where it is this very time, with its conditions.
    """

    row: WhatIf
    flop_per_s: float | None
    promised: float | None
    published: Peak | None
    known_as: Peak | None = None

    @property
    def of_promised(self) -> float | None:
        """Fraction of the promised peak, 0 to 1."""
        return self.flop_per_s / self.promised if self.flop_per_s and self.promised else None

    @property
    def of_peak(self) -> float | None:
        """Fraction of the peak of the arithmetic that ran, 0 to 1."""
        return self.flop_per_s / self.row.peak.flop_per_s if self.flop_per_s and self.row.peak else None

    @property
    def of_published(self) -> float | None:
        """Fraction of the best published rate, 0 to 1."""
        return self.flop_per_s / self.published.flop_per_s if self.flop_per_s and self.published else None


def entered_results(
    workload: Workload, rows: Sequence[WhatIf], promised: Mapping[str, float]
) -> tuple[EnteredResult, ...]:
    """Return one for each of `rows` whose time was entered or whose dtype has a promised peak."""
    return tuple(
        _entered_result(workload, row, promised)
        for row in rows
        if row.origin is Origin.ENTERED or row.dtype in promised
    )


def _entered_result(workload: Workload, row: WhatIf, promised: Mapping[str, float]) -> EnteredResult:
    rate = workload.flop_count / row.time.value if row.time else None
    found = best_published(row.device.spec_key, row.dtype)
    digits = 2e-3  # published rates have three or four digits
    same = bool(found and rate and row.origin is Origin.ENTERED and abs(found.flop_per_s / rate - 1) < digits)
    return EnteredResult(
        row,
        rate,
        promised.get(row.dtype),
        published=None if same else found,
        known_as=found if same else None,
    )


def named_numbers(what: str, text: str, names: Collection[str], example: str) -> tuple[dict[str, float], list[str]]:
    """Return the numbers of ``name:number,name=number``, and what is wrong with the first that cannot be used.

    A name that stands there twice keeps its first number, and is named.

    Args:
        what: the name of the control, for a message.
        names: the names that are known.
        example: what a right text looks like.
    """
    found: dict[str, float] = {}
    problems: list[str] = []
    for word in (part.strip() for part in text.split(",") if part.strip()):
        try:
            name, number = _named_number(what, word, names, example)
            require(
                found.setdefault(name, number) == number,
                what,
                word,
                f"only one number for {name}; {found[name]:g} is used",
            )
        except InvalidInput as error:
            problems.append(str(error))
    if len(problems) > MOST_NAMED:
        problems[MOST_NAMED:] = [f"{what}: {len(problems) - MOST_NAMED} more are invalid"]
    return found, problems


def _named_number(what: str, word: str, names: Collection[str], example: str) -> tuple[str, float]:
    name, _, text = (part.strip() for part in word.rpartition("=" if "=" in word else ":"))
    if name not in names and (row := accelerator_named(name, among=names)):
        name = row.key
    if name not in names:
        listed = ", ".join(names) if len(names) < 12 else "devices of the table by their key"
        raise InvalidInput.of(
            what, word, f"{listed}, each with a number, like {example}{near_names(name, among=names)}"
        )
    number = read_number(text)
    least = 1e-12
    most = 1e24  # of seconds, FLOP/s and money
    if number is None or not least <= number <= most:
        raise InvalidInput.of(what, word, f"numbers from {least:g} to {most:g}, like {example}")
    return name, number


_EVEN = 1.05  # speedups nearer to 1 than this are called equal
_USUAL = ("bf16", "fp16", "tf32")  # formats that models are trained in: what is answered first where they are faster


def summarize(rows: Sequence[WhatIf], *, baseline: str, elsewhere: Sequence[WhatIf] = ()) -> Summary:
    """Return the headline and the details for the rows of one device; a missing time is explained, never guessed.

    Args:
        baseline: the format speedups are against.
        elsewhere: the same on other devices.
    """
    impossible = [
        f"**{row.dtype}** in {format_seconds(row.time.value)} is impossible: {row.impossible}. "
        "It is excluded from the comparison."
        for row in rows
        if row.impossible and row.time
    ]
    answer = _answer(rows, baseline)
    fastest = _fastest(rows, baseline)
    more = f"**{fastest.dtype}** {_gain(fastest, baseline)}." if fastest and fastest is not answer else ""
    between = _between(answer or next((row for row in rows if row.dtype == baseline), None), elsewhere, baseline)
    words = {False: "does not fit", None: "may not fit"}
    memory = [
        f"**{row.dtype}** {words[row.fits]}: all its arrays take {format_bytes(row.memory_bytes)}, "
        f"and the memory is {format_bytes(row.device.memory_bytes)}."
        for row in rows
        if row.fits is not True and row.device.memory_bytes is not None
    ]
    widened = [row for row in rows if row.dtype == _USUAL[0] and row.support == "emulated" and row.time and row.peak]
    rest = [row for row in rows if row not in widened]
    lacks = "".join(
        f" {row.device.title} has no {row.dtype} matrix units: {row.dtype} is computed at the {row.peak.dtype} rate."
        for row in widened
        if row.peak
    )
    details = [*filter(None, (*between, more)), *impossible, *_unlike(rest), *memory, *_notes(rows)]
    return Summary(_headline(rows, answer, baseline) + lacks, tuple(details))


def _fastest(rows: Sequence[WhatIf], baseline: str) -> WhatIf | None:
    others = [row for row in rows if row.speedup and row.dtype != baseline]
    return max(others, key=lambda other: other.speedup.value if other.speedup else 0.0, default=None)


def _answer(rows: Sequence[WhatIf], baseline: str) -> WhatIf | None:
    """Return the format that is answered first: a usual one that is faster, else the fastest; None without another."""
    known = {row.dtype: row for row in rows if row.speedup and row.speedup.value > _EVEN}
    return next((known[name] for name in _USUAL if name in known and name != baseline), _fastest(rows, baseline))


def _headline(rows: Sequence[WhatIf], answer: WhatIf | None, baseline: str) -> str:
    if not rows:
        return "Choose at least one dtype."
    device = f"On {rows[0].device.title}"
    if answer is not None:
        return f"{device}, {answer.dtype} {_gain(answer, baseline)}."
    wrong = next((row for row in rows if row.dtype == baseline and row.impossible), None)
    if wrong:
        return f"{device}, the time entered for {baseline} is impossible, so nothing is compared with it."
    timed = next((row for row in rows if row.credible_time), None)
    if timed and timed.time:
        return (
            f"{device}, {timed.dtype} {_verb(timed, 'takes')} {format_seconds(timed.time.value)}; "
            "there is nothing to compare it with."
        )
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return f"{device}, no time is known: {'; '.join(reasons) or 'no similar measurement exists'}."


def _gain(row: WhatIf, baseline: str) -> str:
    return f"{_compared(row, row.speedup, baseline) if row.speedup else ''}{_digits(row)}"


def _digits(row: WhatIf) -> str:
    """Return to how many significant digits a result is correct; nothing where it is exact, or that is unknown.

    By the usual convention: n digits where the relative error is at most 5e-n.
    """
    if not row.error:
        return ""
    digits = max(0, floor(1 - log10(2 * row.error)))
    return f", correct to {digits} significant digit{'' if digits == 1 else 's'}"


def _between(row: WhatIf | None, elsewhere: Sequence[WhatIf], baseline: str) -> list[str]:
    """Return how the device of `row` compares with others in its format; of a single other one what it gains too."""
    if row is None or row.time is None:
        return []
    same = [other for other in elsewhere if other.dtype == row.dtype and other.credible_time]
    timed = sorted([row, *same], key=lambda each: each.time.value if each.time else 0.0)
    if len(timed) < 2:
        return []
    best = timed[0].time.value if timed[0].time else 0.0
    listed = [
        f"{each.device.title} {format_seconds(each.time.value)}"
        + (f" ({format_multiple(each.time.value / best)} times as long)" if each is not timed[0] else "")
        for each in timed
        if each.time
    ]
    predicted = " (predicted)" if all(each.origin is Origin.PREDICTED for each in timed) else ""
    said = [f"In {row.dtype}{predicted}, from the fastest on: {', '.join(listed)}."]
    if len({other.device.id for other in elsewhere}) == 1 and (answer := _answer(elsewhere, baseline)):
        said.insert(0, f"On {answer.device.title}, {answer.dtype} {_gain(answer, baseline)}.")
    return said


def _compared(row: WhatIf, speedup: UncertainValue, baseline: str) -> str:
    if 1 / _EVEN < speedup.value < _EVEN:
        return f"{_verb(row, 'is')} no faster than {baseline}"
    if speedup.value < 1:
        slower = UncertainValue(1 / speedup.value, 1 / speedup.high, 1 / speedup.low)
        return f"{_verb(row, 'is')} the fastest other dtype, at {_times(slower)} the time of {baseline}{_range(slower)}"
    return f"{_verb(row, 'is')} {_times(speedup)} as fast as {baseline}{_range(speedup)}"


def _verb(row: WhatIf, verb: str) -> str:
    infinitive = {"is": "be", "takes": "take"}[verb]
    return f"is predicted to {infinitive}" if row.origin is Origin.PREDICTED else verb


def _times(ratio: UncertainValue) -> str:
    return f"{format_multiple(ratio.value)} times"


def _range(ratio: UncertainValue) -> str:
    if ratio.low == ratio.high:
        return ""
    relation = compare(Estimate(ratio.value, ratio.low, ratio.high, "times", "what-if"), 1.0).relation
    undecided = "" if relation else "; unclear which is faster"
    return f" ({format_interval((ratio.low, ratio.high), format_multiple)}{undecided})"


def _unlike(rows: Sequence[WhatIf]) -> list[str]:
    """Return why some formats are not native, each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.support != "native" or row.time is None:
            kind = row.support if row.support != "native" else "unknown"
            found.setdefault((kind, row.reason or "the reason is unknown"), []).append(row.dtype)
    return [f"**{' and '.join(names)}**, {kind}: {reason}." for (kind, reason), names in found.items()]


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
