"""Transfers: cost of moving data to a GPU, and the size or number of uses from which it beats this CPU."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "transfer",
    page=Page(
        "transfers",
        "Transfers",
        "Benchmark",
        "Cost of transfers and launches, and the size from which a GPU beats this CPU nevertheless.",
        reads="op size gpu link memory device activity",
        terms=("Measurement", "First call"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"transfer": "cost of moving data to a GPU, and the size or number of uses from which it beats this CPU"},
    activities={"transfer": ActivityKind("gpuexplore.features.transfer.measure", "Transfers", "transfers")},
)
