"""Errors people meet in torch, provoked here: its words, what they mean, and what to do."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "errors",
    page=Page(
        "errors",
        "Errors",
        "Learn",
        6,
        "error",
        "Errors people meet in torch, provoked here: its words, what they mean, and what to do.",
        reads="error device activity",
        terms=("Device", "Dtype"),
        script=Path(__file__).with_name("page.py"),
    ),
    activities={"provoke": ActivityKind("gpuexplore.features.errors.measure", "Error", "errors")},
)
