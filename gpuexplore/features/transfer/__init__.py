"""Transfers: what moving data to a GPU costs, and from which size or use on that pays against this CPU."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "transfer",
    page=Page(
        "transfers",
        "Transfers",
        "Measure",
        5,
        "swap_horiz",
        "What moving data and launching costs, and from which size a GPU beats this CPU all the same.",
        reads="op size gpu link memory device activity",
        terms=("Measurement", "First call"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"transfer": "what moving data to a GPU costs, and from which size or use on that pays against this CPU"},
    activities={"transfer": ActivityKind("gpuexplore.features.transfer.measure", "Transfers", "transfers")},
)
