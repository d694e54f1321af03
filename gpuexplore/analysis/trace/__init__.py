"""A trace of torch.profiler as a table of operations: their time, their work, and how near the roof they come.

Nothing is measured, and torch is not imported: a trace is a file, and this is arithmetic on its events.
"""

from gpuexplore.analysis.trace.events import Trace, read_trace
from gpuexplore.analysis.trace.headline import headline, notes, parts_of
from gpuexplore.analysis.trace.report import report
from gpuexplore.analysis.trace.roof import TracedOn, traced_on
from gpuexplore.analysis.trace.table import Row, TraceTable, table_of

__all__ = [
    "Row",
    "Trace",
    "TraceTable",
    "TracedOn",
    "headline",
    "notes",
    "parts_of",
    "read_trace",
    "report",
    "table_of",
    "traced_on",
]
