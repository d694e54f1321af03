"""A trace of torch.profiler as a table of operations: their time, their work, and how near the roof they come.

Nothing is measured, and torch is not imported: a trace is a file, and this is arithmetic on its events.
"""

from collections.abc import Sequence

from gpuexplore.core.model import Device
from gpuexplore.features.trace.analysis.events import ProfilerTrace, read_trace
from gpuexplore.features.trace.analysis.headline import headline, notes, parts_of, report
from gpuexplore.features.trace.analysis.roof import CPU, TracedOn, traced_on
from gpuexplore.features.trace.analysis.table import TraceRow, TraceTable, table_of


def read_table(
    name: str, content: bytes, most_bytes: int, taken_on: str | Sequence[Device] = ""
) -> tuple[TraceTable, bool]:
    """Return the table of a trace, and whether anything ran on a GPU.

    Args:
        name: of the file.
        content: of it.
        most_bytes: that it may have unpacked.
        taken_on: a key of the table of accelerators, or this machine's devices, whose CPU is meant; empty: what the
            trace says.

    Raises:
        InvalidInput: it is no trace, or was taken on another kind of device.
    """
    trace = read_trace(name, content, most_bytes)
    on = traced_on(trace, gpu=taken_on) if isinstance(taken_on, str) else traced_on(trace, device=CPU, here=taken_on)
    return table_of(trace, on), bool(trace.kernels)


__all__ = [
    "ProfilerTrace",
    "TraceRow",
    "TraceTable",
    "TracedOn",
    "headline",
    "notes",
    "parts_of",
    "read_table",
    "read_trace",
    "report",
    "table_of",
    "traced_on",
]
