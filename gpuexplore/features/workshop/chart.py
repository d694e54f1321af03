"""Charts of a room's guesses and measurements for a projector: few marks, one thing a chart.

A result is a point: whose it is, what bounds it, and whether a limit of its device proves it wrong.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization import is_plausible, shape_label, size_of
from gpuexplore.charts import MOST_TICKS, NEUTRAL, Spec, labelled_rule, log_axis
from gpuexplore.core import format_bytes_per_s, format_flop_per_s, format_seconds, median
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, RoomRun, latest_answers

FINE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # of a decade, where guesses are close together
MOST_COLORS = 7  # of the theme, for people or devices; the last one is all others
OTHERS = "others"
WRONG = "above the limit of its device"
WRONG_COLOR = "#d0342c"
_RIGHT_COLOR = "#00816e"
HEIGHT = 440


@dataclass(frozen=True, slots=True)
class _RoomPoint:
    """A result on the wall.

    Attributes:
        size: the one number its shape stands for, or the bytes it moves.
        rate: FLOP/s, or bytes/s of an operation without FLOPs.
        who: a person, a device or whatever the colours stand for.
        about: of the tooltip: case, time, where it was measured.
        is_wrong: whether a limit of its device proves it wrong.
    """

    size: float
    rate: float
    who: str
    about: str
    is_wrong: bool = False


def guesses(given: Sequence[float], words: Callable[[float], str], truth: float | None = None) -> alt.LayerChart:
    """Return guessed numbers as stacked dots; once it is known, a line at what was measured falls through them.

    Args:
        given: at least one, none below 0.
        words: a number with its unit, for a reader.
        truth: what was measured; None as long as the leader keeps it back.
    """
    every = [*given, *([] if truth is None else [truth])]
    least = min([each for each in every if each > 0], default=1.0)
    ends = (0.8 * least, 1.25 * max(*every, least))
    places = [round(30 * log10(max(each, least) / least) / max(log10(ends[1] / ends[0]), 1.0)) for each in given]
    nearest = min(given, key=lambda each: abs(log10(max(each, least) / truth))) if truth else None
    rows: list[dict[str, Any]] = [
        {
            "guess": max(each, least),
            "row": places[:index].count(place) + 0.5,
            "words": words(each),
            "near": each == nearest,
        }
        for index, (each, place) in enumerate(zip(given, places, strict=True))
    ]
    ticks = _ticks(ends)
    # 2 ms and not 2.00 ms
    labels = {tick: re.sub(r"\.0+(?= )|(?<=\.[1-9])0+(?= )", "", words(tick)) for tick in ticks}
    said = "".join(f"datum.value === {tick!r} ? {label!r} : " for tick, label in labels.items())
    x = alt.X(
        "guess:Q",
        title=None,
        scale=alt.Scale(type="log", domain=list(ends), nice=False),
        axis=alt.Axis(values=ticks, labelExpr=f"{said}''", grid=False),
    )
    highest = max(2.0, *(row["row"] + 1.0 for row in rows))
    y = alt.Y("row:Q", title=None, axis=None, scale=alt.Scale(domain=[0, highest]))
    color = alt.condition("datum.near", alt.value(_RIGHT_COLOR), alt.value(NEUTRAL))
    dots = alt.Chart(pd.DataFrame(rows)).mark_point(filled=True, opacity=0.9, size=1500)
    tooltip = [alt.Tooltip("words:N", title="Guess")]
    layers: list[alt.Chart] = [dots.encode(x=x, y=y, color=color, tooltip=tooltip)]
    description = (
        f"{len(given)} guesses: {', '.join(row['words'] for row in sorted(rows, key=lambda row: row['guess']))}"
    )
    if truth:
        at = alt.Chart(alt.InlineData(values=[{"guess": truth, "said": f"measured: {words(truth)}"}])).encode(x=x)
        layers += [
            at.mark_rule(color=_RIGHT_COLOR, strokeWidth=4),
            at.mark_text(align="left", dx=10, color=_RIGHT_COLOR, y=12).encode(text="said:N"),
        ]
        description += f"; measured: {words(truth)}"
    return alt.LayerChart(layer=layers, width="container", height=HEIGHT, description=description)


def _ticks(ends: tuple[float, float]) -> list[float]:
    """Return round numbers between both ends: of every decade 1, 2 and 5, and more of a short axis."""
    steps = (1, 2, 5) if ends[1] > 5 * ends[0] else FINE
    decades = range(floor(log10(ends[0])), floor(log10(ends[1])) + 1)
    return [tick for decade in decades for step in steps if ends[0] <= (tick := float(f"{step}e{decade}")) <= ends[1]]


def choices(counts: Mapping[str, int], right: set[str]) -> alt.LayerChart:
    """Return how often each answer was given, in the order given.

    Args:
        counts: by answer.
        right: the answers that are right; empty as long as the leader keeps them back.
    """
    rows = [
        {
            "answer": answer,
            "count": count,
            "right": answer in right,
            "label": f"{count}{'   right' if answer in right else ''}",
        }
        for answer, count in counts.items()
    ]
    most = max(max(counts.values(), default=0), 1)
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("answer:N", sort=list(counts), title=None, axis=alt.Axis(labelLimit=420)),
        x=alt.X("count:Q", title=None, axis=None, scale=alt.Scale(domain=[0, most * 1.5])),
    )
    bars = base.mark_bar(cornerRadiusEnd=3).encode(
        color=alt.condition("datum.right", alt.value(_RIGHT_COLOR), alt.value("#808495")),
        tooltip=[alt.Tooltip("answer:N", title="Answer"), alt.Tooltip("count:Q", title="People")],
    )
    texts = base.mark_text(align="left", dx=8, color=NEUTRAL).encode(text="label:N")
    description = "Guesses: " + ", ".join(f"{row['answer']}: {row['label']}" for row in rows)
    return alt.LayerChart(layer=[bars, texts], width="container", height=HEIGHT, description=description)


def _results(
    points: Sequence[_RoomPoint], roofs: Mapping[str, float], *, unit: str, title: str, by_size: bool
) -> alt.LayerChart:
    """Return all results in one chart: a point each, the room's medians as a line, the limit above.

    Args:
        points: at least one.
        roofs: the limits of the devices by their label, in `unit`.
        unit: of the rates.
        title: of the rates' axis.
        by_size: whether `size` of a point is one, and not the bytes that it moves.
    """
    believed = [each for each in points if not each.is_wrong]
    wrong = [each for each in points if each.is_wrong]
    named = _named(believed)
    at_size = defaultdict[float, list[float]](list)
    for each in believed:
        at_size[each.size].append(each.rate)
    medians = [{"size": size, "value": median(rates)} for size, rates in sorted(at_size.items())]
    highest = max([each.rate for each in believed] or [each.rate for each in wrong])
    # Limits far above what is believed are not drawn; what cannot be true is drawn so near that the others stay apart.
    near = {label: roof for label, roof in roofs.items() if roof < 100.0 * highest}
    top = 4.0 * max(highest, *near.values(), 0.0)
    y = log_axis(title, [*(min(each.rate, top) for each in points), *near.values()], unit)
    sizes = sorted({each.size for each in points})
    x = alt.X(
        "size:Q",
        title="Size" if by_size else "Bytes of a call",
        axis=alt.Axis(
            values=sizes if len(sizes) <= MOST_TICKS else alt.Undefined,
            format=",d" if by_size else "~s",
            labelOverlap="greedy",
            grid=False,
        ),
        scale=alt.Scale(type="log", nice=False, padding=20),
    )
    dots = [
        {"size": each.size, "value": each.rate, "who": name, "about": each.about}
        for each, name in zip(believed, named, strict=True)
    ]
    legend = alt.Legend(title=None, orient="bottom", columns=4)
    order = [name for name in dict.fromkeys(named) if name != OTHERS] + [OTHERS] * (OTHERS in named)
    tooltip = [alt.Tooltip("about:N", title="Result")]
    layers = [part for label, roof in near.items() for part in labelled_rule(roof, label)]
    if dots:
        color = alt.Color("who:N", sort=order, scale=alt.Scale(domain=order), legend=legend)
        _points_of = alt.Chart(pd.DataFrame(dots)).mark_point(filled=True, size=90, opacity=0.75)
        line = alt.Chart(pd.DataFrame(medians)).mark_line(color=NEUTRAL, opacity=0.6)
        of = [*tooltip, alt.Tooltip("who:N", title="Of")]
        layers += [line.encode(x=x, y=y), _points_of.encode(x=x, y=y, color=color, tooltip=of)]
    if wrong:
        layers += _crosses(wrong, top, x=x, y=y, tooltip=tooltip)
    said = f"{title} of {len(believed)} results of {len(set(named))}; the line joins the medians of the room"
    left_out = f"; {len(wrong)} results {WRONG} are crosses at the upper edge" if wrong else ""
    return alt.LayerChart(layer=layers, width="container", height=HEIGHT, description=said + left_out)


def _crosses(
    wrong: Sequence[_RoomPoint], top: float, *, x: alt.X, y: Spec, tooltip: list[alt.Tooltip]
) -> list[alt.Chart]:
    """Return what cannot be true: crosses at the upper edge, of which the first says what they are."""
    rows = [
        {
            "size": each.size,
            "value": min(each.rate, top),
            "about": each.about,
            "label": "" if index else f"{WRONG}: left out",
        }
        for index, each in enumerate(sorted(wrong, key=lambda each: each.size))
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(x=x, y=y)
    marks = base.mark_point(filled=True, shape="cross", size=120, color=WRONG_COLOR).encode(tooltip=tooltip)
    return [marks, base.mark_text(align="left", dx=-4, dy=22, color=WRONG_COLOR).encode(text="label:N")]


def _named(points: Sequence[_RoomPoint]) -> list[str]:
    """Return whose each point is, the least frequent together where there are too many for colours."""
    counts = defaultdict[str, int](int)
    for each in points:
        counts[each.who] += 1
    if len(counts) <= MOST_COLORS:
        return [each.who for each in points]
    first = sorted(counts, key=lambda who: -counts[who])[: MOST_COLORS - 1]
    return [each.who if each.who in first else OTHERS for each in points]


LEADER = "leader"
Kept = Sequence[tuple[RoomRun, AnalyzedResult]]


def results_for(facts: RoomFacts, column: Column) -> Kept:
    """Return what a room measured for one thing: the results of one operation, with their runs."""
    found = [(run, each) for run in _runs(facts, column) for each in run.analysis.results if _is_about(column, each)]
    measured = [(run, each) for run, each in found if each.median_s]
    return [(run, each) for run, each in measured if each.case.operation == measured[0][1].case.operation]


def results_chart(kept: Kept, names: Mapping[int, str] | None) -> alt.LayerChart:
    """Return what a room measured, as the wall shows it.

    Args:
        kept: `results_for` one thing; at least one.
        names: of the participants; None: colours stand for devices, and not for people.
    """
    by_memory = _is_by_memory(kept)
    return _results(
        _points_of(kept, names),
        _roofs(kept, by_memory=by_memory),
        unit="B/s" if by_memory else "FLOP/s",
        title="Memory rate" if by_memory else "Compute rate",
        by_size=_is_by_size(kept),
    )


def _points_of(kept: Kept, names: Mapping[int, str] | None) -> list[_RoomPoint]:
    """Return a point for each result; `kept` and `names` as of `results_chart`."""
    by_memory = _is_by_memory(kept)
    by_size = _is_by_size(kept)
    return [
        _RoomPoint(
            float((size_of(each.case) if by_size else None) or each.byte_count),
            (each.bytes_per_s if by_memory else each.flop_per_s) or 0.0,
            _device(run, each) if names is None else _people(run, names),
            _about(run, each),
            not is_plausible(each.result),
        )
        for run, each in kept
    ]


def _is_by_memory(kept: Kept) -> bool:
    run, first = kept[0]
    return is_memory_bound(run.analysis) or not first.flop_count


def _is_by_size(kept: Kept) -> bool:
    """Return whether each shape has a size."""
    return all(size_of(each.case) is not None for _, each in kept)


def _runs(facts: RoomFacts, column: Column) -> Iterator[RoomRun]:
    """Yield the runs that were made for one thing: by answers to a step, or since a goal was set."""
    if column.goal:
        yield from (run for run in facts.runs if any(asked >= column.task.created_utc for _, asked in run.asked))
        return
    wanted = {run_id for answer in latest_answers(facts, column).values() for run_id in answer.runs if run_id}
    yield from (run for run in facts.runs if run.run_id in wanted)


def _is_about(column: Column, analyzed: AnalyzedResult) -> bool:
    """Return whether a result is drawn: a goal asks for an operation and a dtype, other sizes are context."""
    if column.goal is None:
        return True
    settings = column.goal.settings
    return (analyzed.case.operation, analyzed.case.dtype) == (settings["operation"], settings["dtype"])


def _people(run: RoomRun, names: Mapping[int, str]) -> str:
    """Return who asked for a run: the first of them, and how many more."""
    (first, _), *others = run.asked
    name = LEADER if first is None else names.get(first, LEADER)
    return f"{name} and {len(others)} more" if others else name


def _device(run: RoomRun, analyzed: AnalyzedResult) -> str:
    name = analyzed.device.short_title if analyzed.device else analyzed.device_label
    return f"{name} ({run.origin})" if run.origin else name


def _about(run: RoomRun, analyzed: AnalyzedResult) -> str:
    rate = format_flop_per_s(analyzed.flop_per_s) if analyzed.flop_count else format_bytes_per_s(analyzed.bytes_per_s)
    where = f"{_device(run, analyzed)}, run {run.run_id}"
    time = f"{format_seconds(analyzed.median_s)}{', one sample' if analyzed.flag('one_sample') else ''}"
    return f"{analyzed.label}, {shape_label(analyzed.case.shape)}: {time}, {rate}, {where}"


def _roofs(kept: Kept, *, by_memory: bool) -> dict[str, float]:
    """Return the limits of the devices by their label; none where they are many or unknown."""
    found: dict[str, float] = {}
    for run, each in kept:
        limit = each.default_bandwidth if by_memory else each.default_peak
        if limit is not None:
            what = "memory" if by_memory else f"peak in {each.case.dtype}"
            found[f"{what}, {_device(run, each)}"] = getattr(limit, "bytes_per_s" if by_memory else "flop_per_s")
    return found if len(found) <= 2 else {}  # more would lie on each other
