"""`gpuexplore trace`: where the time of a torch.profiler trace goes, and how near the roof its operations come."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gpuexplore.cli.output import EXIT_OK, content_of, declare, print_columns, print_json
from gpuexplore.core.units import format_percent, format_seconds, format_si, format_work_rate
from gpuexplore.features.trace.analysis.events import MOST_BYTES, read_trace
from gpuexplore.features.trace.analysis.headline import (
    dtype_words,
    headline,
    notes,
    predict_command,
    report,
    shape_words,
)
from gpuexplore.features.trace.analysis.table import TraceRow, TraceTable, table_of, traced_on
from gpuexplore.hardware import discover, ensure_ceiling
from gpuexplore.shapes import whole_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `trace`; values stay text."""
    declare(
        parser,
        {
            "file FILE": {"type": Path, "help": "output of prof.export_chrome_trace: .json or .json.gz"},
            "--gpu NAME": "GPU the trace was taken on, a name of `specs` (default: as the trace states)",
            "--device cpu": "cpu, if the trace was taken on this machine: its roof is used",
            "--top N": {"default": "20", "help": "number of rows to print, the longest first (default: %(default)s)"},
            "--json": "print JSON, with every row",
        },
        default="",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print where the time goes, the rows that took longest, and how they are measured and predicted here."""
    top = whole_number("top", arguments.top)
    trace = read_trace(arguments.file.name, content_of(arguments.file, MOST_BYTES))
    here = [ensure_ceiling(device) if device.id == arguments.device else device for device in discover()]
    table = table_of(trace, traced_on(trace, gpu=arguments.gpu, device=arguments.device, here=here))
    if arguments.json:
        print_json(report(table))
    else:
        _print(table, [row for row in table.rows if row.time_s][:top])
    return EXIT_OK


def _print(table: TraceTable, rows: Sequence[TraceRow]) -> None:
    print(headline(table))
    for note in notes(table):
        print(f"- {note}")
    if not table.on.device:
        print(f"- To get roofs, state where it was taken: {'--device cpu' if table.busy_s is None else '--gpu NAME'}.")
    print()
    heading = (
        "operation",
        "shapes",
        "dtype",
        "calls",
        "time",
        "share",
        "FLOPs per call",
        "rate",
        "of the roof",
        "bound",
    )
    cells = [
        (
            _short(row.operation, 50),
            _short(shape_words(row), 44),
            dtype_words(row),
            f"{row.calls:,}",
            format_seconds(row.time_s),
            format_percent(row.share),
            format_si(row.flop_count, "FLOP"),
            format_work_rate(row.flop_per_s or 0.0, row.bytes_per_s),
            format_percent(row.roof_share),
            row.least.bound if row.least else "",
        )
        for row in rows
    ]
    print_columns([heading, *cells])
    left = len([row for row in table.rows if row.time_s]) - len(rows)
    if left > 0:
        print(f"{left:,} more rows took less: --top N, or --json")
    commands = [(row.counterpart.run_command, predict_command(table, row)) for row in rows if row.counterpart]
    if commands:
        print("\nCommands for measurements and predictions of the same operations:")
    for run, predict in dict.fromkeys(commands):
        print(f"  {run}")
        if predict:
            print(f"  {predict}")


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
