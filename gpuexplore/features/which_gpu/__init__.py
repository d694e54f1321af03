"""Ranking of GPUs for one call: its time, energy and price on every GPU that was measured or can be rented."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "which_gpu",
    needs=("atlas",),
    page=Page(
        "which-gpu",
        "Which GPU",
        "Predict",
        "Time, energy and price of one call on every GPU that was measured or can be rented.",
        reads="op dtype shape calls by price",
        terms=("Prediction", "Published", "Kind of calls"),
        script=Path(__file__).with_name("page.py"),
    ),
)
