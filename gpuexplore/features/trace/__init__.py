"""Traces of torch.profiler: where their time goes, and how near the roof their operations come."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "trace",
    page=Page(
        "trace",
        "Trace",
        "Understand",
        4,
        "flowsheet",
        "A torch.profiler trace: where its time goes, and how near the roof its operations come.",
        reads="device",
        terms=("Trace", "Self time", "Share of the roof", "Counterpart"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"trace": "where the time of a torch.profiler trace goes, and how near the roof its operations come"},
)
