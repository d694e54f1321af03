"""A comparison as text: Markdown for a pull request, JSON for a program."""

import re
from collections.abc import Iterable
from typing import Any

from gpuexplore.analysis.compare import ComparedCase, RunComparison, Side
from gpuexplore.analysis.run.json_report import strict
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core.model import Case
from gpuexplore.core.serialization import encode
from gpuexplore.core.units import UNKNOWN, format_interval, format_ratio, format_seconds, in_one_unit

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
