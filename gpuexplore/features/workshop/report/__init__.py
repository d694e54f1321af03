"""The report of a room: progress, guesses and measurements, and all of it as a file."""

import csv
import io
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment

from gpuexplore.core import format_seconds, spreadsheet_safe
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, Standing, standings, truth_of
from gpuexplore.rooms import spoken

COLUMNS = ("task", "asked", "name", "state", "guess", "outcome", "result", "run", "device", "measured", "at_utc")


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A kind of file.

    Attributes:
        write: returns its bytes from what is known of a room, with the names that `names_of` gives.
    """

    title: str
    mime: str
    write: Callable[[RoomFacts, Mapping[int, str]], bytes]


def _rows_of(facts: RoomFacts, names: Mapping[int, str]) -> list[dict[str, str]]:
    """Return a row of COLUMNS for each person and each thing that they did something for."""
    rows = []
    for task_number, column in enumerate(facts.columns, start=1):
        found = standings(facts, column)
        rows += [
            _row(task_number, column, names[number], found[number])
            for number in sorted(found, key=lambda number: names.get(number, ""))
            if number in names
        ]
    return rows


def names_of(facts: RoomFacts, *, anonymous: bool) -> Mapping[int, str]:
    """Return what people are called in a file; without names they are numbered in an order of no meaning."""
    numbers = [person.number for person in facts.people]
    if not anonymous:
        return {person.number: person.name for person in facts.people}
    random.Random(f"{facts.room.number}.{facts.room.created_utc}").shuffle(numbers)  # alike in every file of a room
    width = len(str(len(numbers)))
    return {number: f"participant {task_number:0{width}d}" for task_number, number in enumerate(numbers, start=1)}


def _row(task_number: int, column: Column, name: str, standing: Standing) -> dict[str, str]:
    run = standing.run
    devices = {each.device.title for each in run.analysis.results if each.device} if run else set()
    values = (
        str(task_number),
        column.sentence,
        name,
        standing.state.value,
        standing.guess,
        standing.outcome,
        standing.said,
        run.run_id if run else "",
        ", ".join(sorted(devices)),
        (run.origin or "on this server") if run else "",
        standing.at_utc or "",
    )
    return dict(zip(COLUMNS, values, strict=True))


def _csv(facts: RoomFacts, names: Mapping[int, str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for row in _rows_of(facts, names):
        writer.writerow({name: spreadsheet_safe(value) for name, value in row.items()})
    return text.getvalue().encode()


def _html(facts: RoomFacts, names: Mapping[int, str]) -> bytes:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    rows = _rows_of(facts, names)
    tasks = [
        {
            "place": task_number,
            "column": column,
            "measured": format_seconds(truth_of(facts, column)) if column.goal and column.goal.kind.is_guessed else "",
            "rows": [row for row in rows if row["task"] == str(task_number)],
        }
        for task_number, column in enumerate(facts.columns, start=1)
    ]
    made = environment.from_string(Path(__file__).with_name("report.html.jinja").read_text(encoding="utf-8"))
    code = spoken(facts.room.code)
    return made.render(room=facts.room, code=code, people=len(facts.people), tasks=tasks, names=COLUMNS[2:]).encode()


FORMATS: Mapping[str, ReportFormat] = {
    ".csv": ReportFormat("CSV", "text/csv", _csv),
    ".html": ReportFormat("Report (HTML)", "text/html", _html),
}
