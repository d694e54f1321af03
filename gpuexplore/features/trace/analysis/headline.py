"""Sentences on a trace: where the time goes, and what is unknown; and its JSON."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuexplore.analysis.prediction.calls import CALLS_OF_TIMING, USUAL_CALLS, Calls
from gpuexplore.core.units import UNKNOWN, format_percent, format_seconds
from gpuexplore.features.trace.analysis.call_kinds import ATTENTION
from gpuexplore.features.trace.analysis.events import LONGEST_NAME
from gpuexplore.features.trace.analysis.table import CPU, TraceRow, TraceTable

MOST_NAMED = 3  # operations in the headline
NEARLY_ALL = 0.95  # of the time: the rest is worth no word


@dataclass(frozen=True, slots=True)
class _TracePart:
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


def _parts_of(table: TraceTable) -> tuple[_TracePart, ...]:
    """Return the parts of a trace, the one that took longest first."""
    groups: dict[tuple[str, bool], list[TraceRow]] = defaultdict(list)
    for row in table.rows:
        groups[row.kind or row.operation, row.kind is not None].append(row)
    parts = []
    for (title, is_kind), rows in groups.items():
        time_s = sum(row.time_s for row in rows)
        known = [row for row in rows if row.least and row.time_s]
        known_s = sum(row.time_s for row in known)
        least_s = sum(row.calls * row.least.time_s for row in known if row.least)
        names = dict.fromkeys(row.operation for row in rows if row.time_s)  # the longest first, as the rows are
        share = known_s / time_s if time_s else 0.0
        parts.append(_TracePart(title, is_kind, tuple(names), time_s, least_s / known_s if known_s else None, share))
    return tuple(sorted(parts, key=lambda part: -part.time_s))


def headline(table: TraceTable) -> str:
    """Return one sentence: what takes most of the time, and how near its roof it comes."""
    what = "CPU time" if table.busy_s is None else f"kernel time{f' on {table.on.name}' if table.on.name else ''}"
    part = _parts_of(table)[0]
    if not table.total_s or not part.time_s:
        return f"This trace contains no {what}."
    share = format_percent(part.time_s / table.total_s)
    where = f"{part.title} ({_listed(part.operations)})" if part.is_kind else _listed([part.title])
    return f"{share} of {format_seconds(table.total_s)} of {what} is in {where}; {_roof(part)}."


def _listed(operations: Sequence[str]) -> str:
    more = len(operations) - MOST_NAMED
    names = (
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..." for name in operations[:MOST_NAMED]
    )
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _roof(part: _TracePart) -> str:
    who = "they" if part.is_kind else "it"
    if part.roof_share is None:
        return "the share of the roof is unknown"
    reached = f"reach{'' if part.is_kind else 'es'} {format_percent(part.roof_share)} of the roof"
    if part.known >= NEARLY_ALL:
        return f"{who} {reached}"
    return f"where a roof is known, in {format_percent(part.known)} of that time, {who} {reached}"


def notes(table: TraceTable) -> tuple[str, ...]:
    """Return what a reader has to know of the figures, a sentence each."""
    return (*_notes_on_time(table), *_notes_on_work(table), *_notes_on_events(table))


def _notes_on_time(table: TraceTable) -> Iterator[str]:
    known = "Device unknown:" if table.on.name is None else f"Device: {table.on.name},"
    yield f"{known} {table.on.source}."
    if not table.processes:
        yield (
            "No operation of torch is in this trace, so the kernels' work and roofs are unknown: profile with "
            "ProfilerActivity.CPU among the activities, and record_shapes=True."
        )
    elif not table.has_shapes:
        yield "Shapes were not recorded, so FLOPs, bytes and roofs are unknown: profile with record_shapes=True."
    if table.busy_s is None:
        yield "Times are self times on the host, and include the overhead of profiling." + (
            " Kernels were launched, but the trace has none: what the GPU did is unknown."
            * any("LaunchKernel" in row.operation or "GraphLaunch" in row.operation for row in table.rows)
        )
    elif table.span_s:
        share = format_percent(table.busy_s / table.span_s)
        yield f"The GPU was busy in {share} of the {format_seconds(table.span_s)} of the trace."


def _notes_on_work(table: TraceTable) -> Iterator[str]:
    unknown_s = sum(row.time_s for row in table.rows if row.least is None)
    share = unknown_s / table.total_s if table.on.device and table.total_s else 0.0
    if share >= 1 - NEARLY_ALL:
        why = "the work or its peak is unknown, or its data fit a cache or came from another memory"
        yield f"For {format_percent(share)} of the time no roof is known: {why}."
    described = [row for row in table.rows if row.time_s and row.shapes is not None]
    # on a CPU an attention of torch may have left its work to another operation
    attention = [row for row in described if row.kind == "attention" and row.flop_count is None]
    if names := _named([row for row in attention if row.gpu_s or row.operation not in ATTENTION]):
        yield f"FLOPs unknown for {names}: the recorded arguments do not state how many keys each query attends to."
    of_lists = ("aten::_foreach_", "aten::_fused_", "aten::cat", "aten::stack")
    if names := _named([row for row in described if row.operation.startswith(of_lists) and row.gpu_s]):
        yield f"Bytes unknown for {names}: a trace does not state the dtypes in lists of tensors."
    masked = [row for row in table.rows if row.may_be_masked and row.roof_share]
    if names := _named(masked):
        above = [row for row in masked if _is_possible_with_mask(row)]
        shares = ", ".join(format_percent(row.roof_share / 2) for row in above[:MOST_NAMED] if row.roof_share)
        then = f": operations above the roof would then reach {shares}" if above else ""
        half = "a causal mask would halve the work"
        yield f"Counted without a mask, which traces do not state: {names}; {half}{then}."
    above = [row for row in table.rows if (row.roof_share or 0) > 1 and not _is_possible_with_mask(row)]
    if above:
        names = ", ".join(dict.fromkeys(row.operation for row in above))
        yield (
            f"Above the roof: {names}. Either it was computed in another dtype than the arguments' dtype, or data "
            "came from a cache (as for a tensor that is two of the arguments), or it ran on another device."
        )


def _named(rows: Sequence[TraceRow]) -> str:
    return _listed(list(dict.fromkeys(row.operation for row in rows)))


def _is_possible_with_mask(row: TraceRow) -> bool:
    return row.may_be_masked and 1 < (row.roof_share or 0) <= 2


def _notes_on_events(table: TraceTable) -> Iterator[str]:
    if table.processes > 1:
        yield f"{table.processes} processes are in this trace: kernels are attributed to calls of their own process."
    if count := table.contradicted:
        they = "kernel ends" if count == 1 else "kernels end"
        yield (
            f"{count:,} {they} after the next one on the same stream began, which is impossible: "
            f"they are counted until then, {format_seconds(table.contradicted_s)} less than their timestamps state."
        )
    if count := table.left_out:
        have = "event has" if count == 1 else "events have"
        yield f"{count:,} {have} no name or no time, and are ignored."


def shape_words(row: TraceRow) -> str:
    """Return the shapes of the tensors of a row, ``256×64, 64×192``; a dash where they were not recorded."""
    if row.shapes is None:
        return UNKNOWN
    return ", ".join("×".join(map(str, dims)) if dims else "scalar" for dims in row.shapes) or UNKNOWN


def dtype_words(row: TraceRow) -> str:
    """Return the dtypes of the tensors of a row; a dash without tensors."""
    return ", ".join(row.dtypes) or UNKNOWN


def predict_command(table: TraceTable, row: TraceRow) -> str | None:
    """Return the command that predicts a row on the trace's own device; None where either is unknown."""
    gpu = target(table)
    return row.counterpart.predict_command(gpu, kind_of_calls(table)) if row.counterpart and gpu else None


def kind_of_calls(table: TraceTable) -> Calls:
    """Return the kind of calls that the times of a trace stand for: of a GPU those of the kernels, without launches."""
    return USUAL_CALLS if table.busy_s is None else CALLS_OF_TIMING["device"]


def target(table: TraceTable) -> str | None:
    """Return by which name a prediction knows the trace's device."""
    device = table.on.device
    if device is not None:
        return device.spec_key if device.is_hypothetical else device.id
    return CPU if table.busy_s is None else None


def report(table: TraceTable) -> Mapping[str, Any]:
    """Return what `gpuexplore trace FILE --json` prints: all rows, the one that took longest first."""
    return {
        "schema_version": 1,
        "file": table.name,
        "device": {"name": table.on.name, "key": target(table) if table.on.device else None, "source": table.on.source},
        "time_of": "cpu" if table.busy_s is None else "gpu",
        "total_s": table.total_s,
        "self_cpu_s": table.self_cpu_s,
        "busy_s": table.busy_s,
        "span_s": table.span_s,
        "has_shapes": table.has_shapes,
        "headline": headline(table),
        "notes": list(notes(table)),
        "parts": [
            {"title": part.title, "time_s": part.time_s, "operations": list(part.operations), "roof": part.roof_share}
            for part in _parts_of(table)
        ],
        "rows": [_row(table, row) for row in table.rows],
    }


def _row(table: TraceTable, row: TraceRow) -> Mapping[str, Any]:
    ours = row.counterpart
    return {
        "operation": row.operation,
        "kind": row.kind,
        "shapes": None if row.shapes is None else [list(dims) for dims in row.shapes],
        "dtypes": list(row.dtypes),
        "calls": row.calls,
        "time_s": row.time_s,
        "self_cpu_s": row.self_cpu_s,
        "gpu_s": row.gpu_s,
        "share": row.share,
        "flop_count": row.flop_count,
        "byte_count": row.byte_count,
        "flop_per_s": row.flop_per_s,
        "bytes_per_s": row.bytes_per_s,
        "roof_share": row.roof_share,
        "bound": row.least.bound if row.least else None,
        "counterpart": ours
        and {
            "operation": ours.operation,
            "shape": dict(ours.shape.axes),
            "dtype": ours.dtype,
            "layout": ours.layout,
        },
        "run": ours and ours.run_command,
        "predict": predict_command(table, row),
    }
