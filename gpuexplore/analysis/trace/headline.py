"""What a trace says in sentences: where the time goes, and what is unknown."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.analysis.trace.table import Row, TraceTable
from gpuexplore.units import format_percent, format_seconds

MOST_NAMED = 3  # operations in the headline
NEARLY_ALL = 0.95  # of the time: the rest is worth no word
WITHOUT_SHAPES = "Shapes were not recorded, so FLOPs, bytes and roofs are unknown: profile with record_shapes=True."


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are summed up under one name.

    Attributes:
        title: a kind of operations, or the operation itself.
        roof_share: fraction of the roof, of the rows whose roof is known; None where none is.
        known: fraction of the part's time that these rows took.
    """

    title: str
    is_kind: bool
    operations: tuple[str, ...]
    time_s: float
    roof_share: float | None
    known: float


def parts_of(table: TraceTable) -> tuple[Part, ...]:
    """Return the parts of a trace, the one that took longest first."""
    groups: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in table.rows:
        groups[row.kind or row.operation, row.kind is not None].append(row)
    parts = [_part(title, is_kind, rows) for (title, is_kind), rows in groups.items()]
    return tuple(sorted(parts, key=lambda part: -part.time_s))


def _part(title: str, is_kind: bool, rows: Sequence[Row]) -> Part:
    time_s = sum(row.time_s for row in rows)
    known = [row for row in rows if row.least and row.time_s]
    known_s = sum(row.time_s for row in known)
    least_s = sum(row.calls * row.least.time_s for row in known if row.least)
    names = dict.fromkeys(row.operation for row in rows if row.time_s)  # the longest first, as the rows are
    share = known_s / time_s if time_s else 0.0
    return Part(title, is_kind, tuple(names), time_s, least_s / known_s if known_s else None, share)


def headline(table: TraceTable) -> str:
    """Return one sentence: what takes most of the time, and how near its roof it comes."""
    what = "CPU time" if table.busy_s is None else f"kernel time{f' on {table.on.name}' if table.on.name else ''}"
    part = parts_of(table)[0]
    if not table.total_s or not part.time_s:
        return f"The events of this trace took no {what}."
    share = format_percent(part.time_s / table.total_s)
    where = f"{part.title} ({_names(part)})" if part.is_kind else part.title
    return f"{share} of {format_seconds(table.total_s)} of {what} is in {where}; {_roof(part)}."


def _names(part: Part) -> str:
    more = len(part.operations) - MOST_NAMED
    return ", ".join(part.operations[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _roof(part: Part) -> str:
    who = "they" if part.is_kind else "it"
    if part.roof_share is None:
        return "how near the roof is unknown"
    reached = f"reach{'' if part.is_kind else 'es'} {format_percent(part.roof_share)} of the roof"
    if part.known >= NEARLY_ALL:
        return f"{who} {reached}"
    return f"where a roof is known, in {format_percent(part.known)} of that time, {who} {reached}"


def notes(table: TraceTable) -> tuple[str, ...]:
    """Return what a reader has to know of the figures, a sentence each."""
    return tuple(filter(None, (judge(table) for judge in (_device, _shapes, _busy, _unknown, _above, _left_out))))


def _device(table: TraceTable) -> str | None:
    if table.on.name is None:
        return f"Device unknown: {table.on.source}."
    return f"Device: {table.on.name}, {table.on.source}."


def _shapes(table: TraceTable) -> str | None:
    return None if table.has_shapes else WITHOUT_SHAPES


def _busy(table: TraceTable) -> str | None:
    if table.busy_s is None:
        return "Times are those on the host, less what was called within; profiling itself adds to each call."
    share = format_percent(table.busy_s / table.span_s) if table.span_s else None
    return share and f"Something ran on the GPU in {share} of the {format_seconds(table.span_s)} that the trace spans."


def _unknown(table: TraceTable) -> str | None:
    if table.on.device is None or not table.total_s:
        return None
    unknown_s = sum(row.time_s for row in table.rows if row.least is None)
    share = unknown_s / table.total_s
    if share < 1 - NEARLY_ALL:
        return None
    why = "the work or its peak is unknown, or its data fit a cache"
    return f"For {format_percent(share)} of the time no roof is known: {why}."


def _above(table: TraceTable) -> str | None:
    above = [row for row in table.rows if (row.roof_share or 0) > 1]
    if not above:
        return None
    names = ", ".join(dict.fromkeys(row.operation for row in above))
    return (
        f"Above the roof: {names}. What cannot be was computed in another dtype than its arguments have, came from a "
        "cache, or ran on another device."
    )


def _left_out(table: TraceTable) -> str | None:
    count = table.left_out
    return (
        f"{count:,} {'event has' if count == 1 else 'events have'} no name or no time, and are left out."
        if count
        else None
    )
