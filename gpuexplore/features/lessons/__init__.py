"""Lessons: guess, measure here, see why; each of a few steps whose answers follow from what was measured."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "lessons",
    page=Page(
        "lessons",
        "Lessons",
        "Learn",
        "Guess, measure here, see why: fourteen lessons of ten minutes, and a tour.",
        reads="lesson step view key",
        terms=("Lesson", "Outcome", "Interval", "Flag"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"lesson": "lessons: list them, check a file, run one on this machine, print a sheet"},
    offer="gpuexplore.features.lessons.ui.offer",
)
