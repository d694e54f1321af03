"""Workshop: rooms that a class joins by a code, what their leader sets, and who found what, on a wall and in files."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "workshop",
    needs=("lessons",),
    page=Page(
        "rooms",
        "Rooms",
        "Rooms",
        "Tasks for a class that joins by a code, without accounts: guesses, runs and lessons, results on a wall.",
        reads="room lead view",
        terms=("Room", "Lesson", "Run"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"room": "rooms for a class: open, list, show, send messages, set goals, export, close, delete"},
)
