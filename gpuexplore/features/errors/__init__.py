"""Common errors of torch, reproduced here: the message, its meaning, and the fix."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "errors",
    page=Page(
        "errors",
        "Errors",
        "Learn",
        "Common errors of torch, reproduced here: the message, its meaning, and the fix.",
        reads="error device activity",
        terms=("Device", "Dtype"),
        script=Path(__file__).with_name("page.py"),
    ),
    activities={"provoke": ActivityKind("gpuexplore.features.errors.measure", "Error", "errors")},
)
