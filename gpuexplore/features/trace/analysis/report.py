"""A trace as JSON, and its cells in words."""

from collections.abc import Mapping
from typing import Any

from gpuexplore.analysis.prediction.calls import CALLS_OF_TIMING, USUAL_CALLS, Calls
from gpuexplore.features.trace.analysis.counterpart import Counterpart
from gpuexplore.features.trace.analysis.headline import headline, notes, parts_of
from gpuexplore.features.trace.analysis.roof import CPU
from gpuexplore.features.trace.analysis.table import TraceRow, TraceTable
from gpuexplore.units import UNKNOWN

SCHEMA_VERSION = 1


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
        "schema_version": SCHEMA_VERSION,
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
            for part in parts_of(table)
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
        "counterpart": ours and _counterpart(ours),
        "run": ours and ours.run_command,
        "predict": predict_command(table, row),
    }


def _counterpart(ours: Counterpart) -> Mapping[str, Any]:
    axes = dict(ours.shape.axes)
    return {"operation": ours.operation, "shape": axes, "dtype": ours.dtype, "layout": ours.layout}
