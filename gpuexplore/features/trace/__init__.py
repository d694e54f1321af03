"""Traces of torch.profiler: where their time goes, and how near the roof their operations come."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "trace",
    page=Page(
        "trace",
        "Traces",
        "Traces",
        "A torch.profiler trace as a table of operations: time, and share of the roof.",
        reads="device",
        terms=("Trace", "Self time", "Share of the roof", "Counterpart"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"trace": "a torch.profiler trace as a table of operations, with time and share of the roof"},
)
