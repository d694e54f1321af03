"""Charts of a room's guesses and measurements for a projector: few marks, one thing a chart."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10

import altair as alt
import pandas as pd

from gpuexplore.charts.axes import MOST_TICKS, log_axis, log_ticks
from gpuexplore.charts.reference_lines import labelled_rule
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.statistics import median

FINE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # of a decade, where guesses are close together
MOST_COLORS = 7  # of the theme, for people or devices; the last one is all others
OTHERS = "others"
WRONG = "above the limit of its device"
RIGHT_COLOR, GUESS_COLOR = "#00816e", "#808495"
WRONG_COLOR = "#d0342c"
FAR_ROOF = 100.0  # times the highest that is believed: a limit further up is not drawn
ABOVE = 4.0  # times the highest that is believed: where what cannot be true is drawn, so that the others stay apart
HEIGHT = 440
ZEROS = re.compile(r"\.0+(?= )|(?<=\.[1-9])0+(?= )")


@dataclass(frozen=True, slots=True)
class RoomPoint:
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
    """Return the histogram of guessed numbers.

    Args:
        given: at least one, none below 0.
        words: a number with its unit, for a reader.
        truth: what was measured; None as long as the leader keeps it back.
    """
    edges = _edges([*given, *([] if truth is None else [truth])])
    labels = [f"{_round(words(low))} – {_round(words(high))}" for low, high in pairwise(edges)]
    counts = dict.fromkeys(labels, 0)
    for number in given:
        counts[labels[_bin_of(number, edges)]] += 1
    right = set() if truth is None else {labels[_bin_of(truth, edges)]}
    return choices(counts, right, f"measured: {words(truth)}" if truth is not None else "")


def choices(counts: Mapping[str, int], right: set[str], said: str = "") -> alt.LayerChart:
    """Return how often each answer was given, in the order given.

    Args:
        counts: by answer.
        right: the answers that are right; empty as long as the leader keeps them back.
        said: next to the bars of those that are.
    """
    suffix = f"   {said or 'right'}"
    rows = [
        {
            "answer": answer,
            "count": count,
            "right": answer in right,
            "label": f"{count}{suffix if answer in right else ''}",
        }
        for answer, count in counts.items()
    ]
    most = max(max(counts.values(), default=0), 1)
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("answer:N", sort=list(counts), title=None, axis=alt.Axis(labelLimit=420)),
        x=alt.X("count:Q", title=None, axis=None, scale=alt.Scale(domain=[0, most * 1.5])),
    )
    bars = base.mark_bar(cornerRadiusEnd=3).encode(
        color=alt.condition("datum.right", alt.value(RIGHT_COLOR), alt.value(GUESS_COLOR)),
        tooltip=[alt.Tooltip("answer:N", title="Answer"), alt.Tooltip("count:Q", title="People")],
    )
    texts = base.mark_text(align="left", dx=8, color=NEUTRAL).encode(text="label:N")
    description = "Guesses: " + ", ".join(f"{row['answer']}: {row['label']}" for row in rows)
    return alt.LayerChart(layer=[bars, texts], width="container", height=HEIGHT, description=description)


def results(
    points: Sequence[RoomPoint], roofs: Mapping[str, float], *, unit: str, title: str, by_size: bool
) -> alt.LayerChart:
    """Return all results in one chart: a point each, the room's medians as a line, the limit above.

    Args:
        points: at least one.
        roofs: the limits of the devices by their label, in `unit`.
        unit: of the rates.
        title: of the rates' axis.
        by_size: whether `size` of a point is one, and not the bytes that it moves.
    """
    believed, wrong = [each for each in points if not each.is_wrong], [each for each in points if each.is_wrong]
    named, at_size = _named(believed), defaultdict[float, list[float]](list)
    for each in believed:
        at_size[each.size].append(each.rate)
    medians = [{"size": size, "value": median(rates)} for size, rates in sorted(at_size.items())]
    highest = max([each.rate for each in believed] or [each.rate for each in wrong])
    near = {label: roof for label, roof in roofs.items() if roof < FAR_ROOF * highest}
    top = ABOVE * max(highest, *near.values(), 0.0)
    values = [*(min(each.rate, top) for each in points), *near.values()]
    y = log_axis(title, values, unit)
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
        points_of = alt.Chart(pd.DataFrame(dots)).mark_point(filled=True, size=90, opacity=0.75)
        line = alt.Chart(pd.DataFrame(medians)).mark_line(color=NEUTRAL, opacity=0.6)
        of = [*tooltip, alt.Tooltip("who:N", title="Of")]
        layers += [line.encode(x=x, y=y), points_of.encode(x=x, y=y, color=color, tooltip=of)]
    if wrong:
        layers += _crosses(wrong, top, x=x, y=y, tooltip=tooltip)
    said = f"{title} of {len(believed)} results of {len(set(named))}; the line joins the medians of the room"
    left_out = f"; {len(wrong)} results {WRONG} are crosses at the upper edge" if wrong else ""
    return alt.LayerChart(layer=layers, width="container", height=HEIGHT, description=said + left_out)


def _crosses(
    wrong: Sequence[RoomPoint], top: float, *, x: alt.X, y: alt.Y, tooltip: list[alt.Tooltip]
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


def _named(points: Sequence[RoomPoint]) -> list[str]:
    """Return whose each point is, the least frequent together where there are too many for colours."""
    counts = defaultdict[str, int](int)
    for each in points:
        counts[each.who] += 1
    if len(counts) <= MOST_COLORS:
        return [each.who for each in points]
    first = sorted(counts, key=lambda who: -counts[who])[: MOST_COLORS - 1]
    return [each.who if each.who in first else OTHERS for each in points]


def _edges(numbers: Sequence[float]) -> list[float]:
    """Return the edges of bins that cover all numbers: by a log scale, evenly where one is 0."""
    low, high = min(numbers), max(numbers)
    if low <= 0:
        step = high / 8 or 1.0
        return [step * index for index in range(9)]
    edges = log_ticks([low, high])
    if len(edges) > 4:
        return edges
    decade = floor(log10(low))
    fine = [float(f"{part}e{decade + more}") for more in range(3) for part in FINE]
    return [
        max(edge for edge in fine if edge <= low),
        *(edge for edge in fine if low < edge < high),
        min(edge for edge in fine if edge > high),
    ]


def _bin_of(number: float, edges: Sequence[float]) -> int:
    """Return the index of the bin that a number is in; the upper edge of the last one is in it too."""
    return max(index for index, low in enumerate(edges[:-1]) if number >= low or index == 0)


def _round(words: str) -> str:
    """Return a round number without its zeros: 2 ms and not 2.00 ms."""
    return ZEROS.sub("", words)
