"""Comparison of two runs, case by case: one ratio with its interval, what follows from it, and what else differs.

The interval of a ratio covers what samples vary by, what disturbed them, and by how much times vary from one process to
the next on that machine: two runs are two processes. Where a result does not say the last, what is assumed of a shared
machine counts.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, fsum, log
from typing import Any, Literal

from gpuexplore.analysis.run.json_report import strict
from gpuexplore.analysis.utilization.utilization import case_label, device_of, measured_clock_hz, shape_label
from gpuexplore.analysis.verdict import Estimate, Words, compare, ratio_of
from gpuexplore.core import (
    UNKNOWN,
    Case,
    Environment,
    Result,
    encode,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
    format_si,
    in_one_unit,
    median,
)
from gpuexplore.hardware.identity import same_device
from gpuexplore.measure.conditions.spread import length_of, prior


@dataclass(frozen=True, slots=True)
class _Difference:
    """Something that is not the same in both runs, in words."""

    what: str
    before: str
    after: str


def _differences(pairs: Sequence[tuple[Result, Result]]) -> tuple[_Difference, ...]:
    """Return what differs between the results of the same cases, (before, after)."""
    before = [old for old, _ in pairs]
    after = [new for _, new in pairs]
    earlier = _facts(before)
    later = _facts(after)
    found = []
    for what in dict.fromkeys((*earlier, *later)):
        missing = UNKNOWN if what in FACTS else "none"
        old = earlier.get(what) or missing
        new = later.get(what) or missing
        if old != new:
            found.append(_Difference(what, old, new))
    return (*found, *_clocks(before, after), *_flags(before, after))


def _facts(results: Sequence[Result]) -> dict[str, str]:
    """Return FACTS of results, empty where unknown, then the versions of libraries, and settings."""
    found = {
        what: ", ".join(sorted({text for result in results if (text := fact_of(result))}))
        for what, fact_of in FACTS.items()
    }
    for result in results:
        if result.environment:
            found |= result.environment.libraries
            found |= {f"setting {name}": value for name, value in result.environment.settings.items()}
    return found


def _clocks(before: Sequence[Result], after: Sequence[Result]) -> Iterable[_Difference]:
    old, new = (_clock_hz(results) for results in (before, after))
    tolerance = 1.03  # a clock moves while it is read
    if old and new and not 1 / tolerance < new / old < tolerance:
        yield _Difference("clock", format_si(old, "Hz"), format_si(new, "Hz"))


def _clock_hz(results: Sequence[Result]) -> float | None:
    known = [clock_hz for result in results if (clock_hz := measured_clock_hz(result))]
    return median(known) if known else None


def _flags(before: Sequence[Result], after: Sequence[Result]) -> Iterable[_Difference]:
    """Yield flags that many more results carry on one side."""
    names = dict.fromkeys(flag.name for result in (*before, *after) for flag in result.flags)
    share = 0.25  # share of results by which two runs differ in a flag
    for name in names:
        counts = [sum(any(flag.name == name for flag in result.flags) for result in side) for side in (before, after)]
        if abs(counts[0] - counts[1]) > share * len(before):
            old, new = (f"{count} of {len(before)}" for count in counts)
            yield _Difference(f"flag {name.replace('_', ' ')}", old, new)


def _of(fact_of: Callable[[Environment], object]) -> Callable[[Result], str | None]:
    def words(result: Result) -> str | None:
        value = fact_of(result.environment) if result.environment else None
        return None if value is None else str(value)

    return words


def _threads(result: Result) -> str | None:
    threads = result.case.options.threads or (result.environment and result.environment.threads)
    return str(threads) if threads else None


FACTS: Mapping[str, Callable[[Result], str | None]] = {
    "device": _of(lambda environment: environment.device.title),
    "driver": _of(lambda environment: environment.device.driver),
    "cores": _of(lambda environment: environment.device.cores),
    "gpuexplore": _of(lambda environment: environment.app_version),
    "commit": _of(lambda environment: environment.commit),
    "Python": _of(lambda environment: environment.python),
    "platform": _of(lambda environment: environment.platform),
    "threads": _threads,
    "governor": _of(lambda environment: environment.governor),
    "cache state": lambda result: result.case.options.cache,
    "layout": lambda result: result.case.options.layout,
    "alignment": lambda result: result.case.options.align,
}


Change = Literal["faster", "slower", "same", "broken", "mended"]
INTERVAL_WIDENING = 1.06  # times the half width of a ratio, in logarithms: 4 % of false alarms instead of 5
COUNTED: Mapping[Change | None, str] = {
    "faster": "faster",
    "slower": "slower",
    "same": "unchanged",
    "broken": "no longer measured",
    "mended": "newly measured",
    None: "inconclusive",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs.

    Attributes:
        title: what it is called.
        results: of its cases.
        source: a run's id, or the name of a file.
        when: UTC in ISO 8601; None is unknown.
    """

    title: str
    results: tuple[Result, ...]
    source: str = ""
    when: str | None = None


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """One case in both runs.

    Attributes:
        before, after: its results.
        ratio: of the times, after over before: above 1 is slower; None without both measurements.
        change: what follows; None: inconclusive. `broken` was measured before and not now, `mended` the reverse.
        statement: the answer with its certainty, or what is known instead, without a full stop.
    """

    before: Result
    after: Result
    ratio: Estimate | None
    change: Change | None
    statement: str

    @property
    def case(self) -> Case:
        """The measured case, as the second run names it."""
        return self.after.case

    @property
    def label(self) -> str:
        """Its name in a sentence: ``torch in fp32, 64 × 64 × 64``."""
        return ", ".join([case_label(self.case), *([shape_label(self.case.shape)] if self.case.shape.axes else [])])


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of two runs.

    Attributes:
        before, after: the runs.
        cases: that both have, in the order of the second.
        only_before, only_after: cases that one alone has.
        differences: what else is not the same, and could explain it.
        mean: geometric mean of the conclusive ratios, with the same mean of their intervals; None of nothing.
    """

    before: Side
    after: Side
    cases: tuple[ComparedCase, ...]
    only_before: tuple[Case, ...]
    only_after: tuple[Case, ...]
    differences: tuple[_Difference, ...] = ()
    mean: Estimate | None = None
    counts: Mapping[Change | None, int] = field(default_factory=dict, hash=False)

    @property
    def headline(self) -> str:
        """The result in one sentence, of the cases that were measured in at least one of the runs."""
        if not self.cases:
            return "The two runs have no case in common."
        missing = sum(not (case.before.measurement or case.after.measurement) for case in self.cases)
        counts = {**self.counts, None: self.counts.get(None, 0) - missing}
        count = sum(counts.values())
        if not count:
            return "No case was measured in either run."
        listed = ", ".join(f"{counts[change]} {words}" for change, words in COUNTED.items() if counts.get(change))
        what = "1 case" if count == 1 else f"{count} cases"
        if count == counts.get("same", 0) + counts[None]:
            return f"No significant change in {what}{f': {listed}' if count > 1 else ''}."
        most = 2 * (count - counts[None]) >= count  # a mean of few significant ratios would be read as that of all
        mean = f"; geometric mean of the conclusive ones: {_change(self.mean)}" if self.mean and most else ""
        return f"Of {what}: {listed}{mean}."


def compare_runs(before: Side, after: Side) -> RunComparison:
    """Return what follows from two runs, matched by case.

    Where each of them used one device, those are compared with each other, whatever they are called.
    """
    one_each = all(len({result.case.device for result in side.results}) == 1 for side in (before, after))
    earlier = {_key(result.case, one_each): result for result in before.results}
    later = {_key(result.case, one_each): result for result in after.results}
    cases = tuple(_compared(earlier[key], result) for key, result in later.items() if key in earlier)
    return RunComparison(
        before,
        after,
        cases,
        only_before=tuple(result.case for key, result in earlier.items() if key not in later),
        only_after=tuple(result.case for key, result in later.items() if key not in earlier),
        differences=_differences([(found.before, found.after) for found in cases]),
        mean=_mean(cases),
        counts=Counter(found.change for found in cases),
    )


def _key(case: Case, one_each: bool) -> object:
    """Return what two results of the same case share: how long they were sampled decides nothing."""
    options = case.options
    device = "" if one_each else case.device
    return (case.operation, case.shape, case.dtype, case.implementation, device, options.data, options.block)


def _compared(before: Result, after: Result) -> ComparedCase:
    if before.measurement is None or after.measurement is None:
        if after.measurement is None and before.measurement is None:
            return ComparedCase(before, after, None, None, f"not measured in either: {after.reason}")
        if after.measurement is None:
            return ComparedCase(before, after, None, "broken", f"{after.status.value}: {after.reason}")
        return ComparedCase(before, after, None, "mended", f"was {before.status.value}: {before.reason}")
    if before.measurement.is_single or after.measurement.is_single:
        return ComparedCase(before, after, None, None, "a single sample has no interval: measure again")
    ratio = _widened(ratio_of(*_with_spread(after, before), same_run=False))
    verdict = compare(ratio, 1.0, words=Words(below="faster", above="slower", question="whether it changed"))
    if verdict.relation is not None:
        change: Change = "faster" if verdict.relation == "below" else "slower"
        return ComparedCase(before, after, ratio, change, verdict.statement)
    same = 1.05  # a ratio whose whole interval lies within this factor of 1
    verdict = compare(ratio, 1 / same, same, words=Words(within="unchanged", question="whether it changed"))
    return ComparedCase(before, after, ratio, "same" if verdict.relation == "within" else None, verdict.statement)


def _widened(ratio: Estimate | None) -> Estimate | None:
    """Return a ratio with its interval a little wider: one of 95 % is wrong in one case of twenty, and no less."""
    if ratio is None or ratio.interval is None:
        return ratio
    low, high = (ratio.value * (end / ratio.value) ** INTERVAL_WIDENING for end in ratio.interval)
    return replace(ratio, low=min(low, ratio.value), high=max(high, ratio.value))


def _with_spread(*results: Result) -> tuple[Result, ...]:
    """Return results that say by how much their times vary from process to process.

    On one device the larger spread counts for both: the first runs of a machine know least of it. Where a result says
    nothing, what is assumed of a shared machine does.
    """
    spreads = [_spread(result) for result in results]
    devices = [device_of(result) for result in results]
    if devices[1] is not None and same_device(devices[0], devices[1]):
        spreads = [max(spreads)] * len(spreads)
    return tuple(
        replace(result, measurement=replace(result.measurement, between_processes=spread))
        if result.measurement and len(result.measurement.processes) < 2  # several show their spread themselves
        else result
        for result, spread in zip(results, spreads, strict=True)
    )


def _spread(result: Result) -> float:
    measurement = result.measurement
    if measurement is None or len(measurement.processes) > 1:
        return 0.0
    if measurement.between_processes is not None:
        return measurement.between_processes
    gpu = result.environment is not None and result.environment.device.kind != "cpu"
    return prior(None if gpu else "shared", length_of(measurement.median_s), "many").times


def _mean(cases: Sequence[ComparedCase]) -> Estimate | None:
    """Return the geometric mean of conclusive ratios; slow processes slow cases alike, so its interval is theirs."""
    known = [found.ratio for found in cases if found.change and found.ratio and found.ratio.interval]
    if not known:
        return None
    value, low, high = (
        exp(fsum(map(log, ends)) / len(known))
        for ends in zip(*((ratio.value, *(ratio.interval or ())) for ratio in known), strict=True)
    )
    return Estimate(value, min(low, value), max(high, value), "times", f"{len(known)} cases")


def _change(mean: Estimate) -> str:
    """Return ``0.93 times as long (0.90 to 0.97)``, or a percentage where it is small."""
    share = mean.value - 1
    if abs(share) < 0.005:
        return "unchanged"
    if mean.value > 2 or mean.value < 0.5:
        return f"{format_ratio(mean.value)} the time"
    return f"{format_percent(abs(share))} {'slower' if share > 0 else 'faster'}"


INCONCLUSIVE = "inconclusive"
HEADING = ("case", "before", "after", "ratio", "95 % interval", "")


def table_row(found: ComparedCase) -> tuple[str, ...]:
    """Return a line of the table of cases, in the order of HEADING."""
    old = found.before.measurement
    new = found.after.measurement
    ratio = found.ratio
    return (
        found.label,
        format_seconds(old.median_s if old else None),
        format_seconds(new.median_s if new else None),
        format_ratio(ratio.value) if ratio else UNKNOWN,
        format_interval(ratio.interval, format_ratio) if ratio and ratio.interval else UNKNOWN,
        found.change or INCONCLUSIVE,
    )


def as_markdown(comparison: RunComparison) -> str:
    """Return a comparison as Markdown: one sentence, a table of cases, and what differs."""
    lines = [f"**{comparison.headline}**", "", f"Before: {_side(comparison.before)}. After: {_side(comparison.after)}."]
    if comparison.cases:
        lines += ["", markdown_row(HEADING), markdown_row(["---"] * len(HEADING))]
        lines += map(_case_line, in_one_unit([table_row(found) for found in comparison.cases]))
    if comparison.differences:
        lines += ["", "What differs:", ""]
        lines += [
            f"- {markdown_text(each.what)}: {markdown_text(each.before)} → {markdown_text(each.after)}"
            for each in comparison.differences
        ]
    for words, cases in (("before", comparison.only_before), ("after", comparison.only_after)):
        if cases:
            lines += ["", f"Only {words}: {len(cases)} cases, e.g. {markdown_text(_named(cases[0]))}."]
    return "\n".join(lines) + "\n"


def as_json(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison as strict JSON: SI base units, unknown is null."""
    found = {
        "headline": comparison.headline,
        "before": _encoded(comparison.before),
        "after": _encoded(comparison.after),
        "mean": encode(comparison.mean),
        "cases": [
            {
                "case": encode(each.case) | {"shape": dict(each.case.shape.axes)},
                "before_s": each.before.measurement and each.before.measurement.median_s,
                "after_s": each.after.measurement and each.after.measurement.median_s,
                "ratio": each.ratio and each.ratio.value,
                "ratio_ci95": each.ratio and each.ratio.interval and list(each.ratio.interval),
                "told": each.change,
                "statement": each.statement,
            }
            for each in comparison.cases
        ],
        "only_before": [_named(case) for case in comparison.only_before],
        "only_after": [_named(case) for case in comparison.only_after],
        "differences": encode(comparison.differences),
    }
    return strict(found)


def _encoded(side: Side) -> dict[str, str | None]:
    return {"title": side.title, "source": side.source, "when": side.when}


def _side(side: Side) -> str:
    words = (markdown_text(side.title), markdown_text(side.source), (side.when or "")[:16].replace("T", " "))
    return ", ".join(filter(None, words))


def _named(case: Case) -> str:
    return f"{case.implementation} in {case.dtype}, {shape_label(case.shape)} on {case.device}"


def _case_line(row: tuple[str, ...]) -> str:
    *figures, change = row
    return markdown_row([*map(markdown_text, figures), f"**{change}**" if change in ("slower", "broken") else change])


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """Return text as Markdown shows it literally, on one line, in a cell of a table."""
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", " ".join(text.split()))
