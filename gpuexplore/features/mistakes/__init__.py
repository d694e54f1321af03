"""Timing mistakes: ways to get a wrong number, each made next to the right one, and what gives it away."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "mistakes",
    page=Page(
        "timing-mistakes",
        "Timing mistakes",
        "Learn",
        "Common timing mistakes, each reproduced next to the right way, and how to detect them.",
        reads="mistake activity",
        terms=("Mistake", "Flag", "Sample"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"mistake": "a timing mistake reproduced on purpose, next to the right way"},
    activities={"mistake": ActivityKind("gpuexplore.features.mistakes.catalog", "Timing mistake", "timing-mistakes")},
    lesson_blocks=("mistake",),
)
