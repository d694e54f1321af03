"""`gpuexplore lesson`: the lessons, whether a file is one, its steps done on this machine, and a sheet to print."""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup

from gpuexplore.activity import Activity
from gpuexplore.analysis.figure import QuantityRow
from gpuexplore.backends.host import installed_versions
from gpuexplore.cli.activity_run import perform_on
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, check_writable, declare, print_columns, print_json
from gpuexplore.core.model import Case, Device, Experiment, Origin, Result
from gpuexplore.features.lessons.lesson import FOLDER, catalog, lesson_at
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, NO_IDEA, MistakeBlock, module_of, name_of, with_colon
from gpuexplore.features.lessons.lesson.evidence import Measured, names_of, rehearse, tasks_of
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, JudgedStep, judged_by
from gpuexplore.hardware import discover, lessons_directory
from gpuexplore.jobs.engines import batches_of
from gpuexplore.jobs.engines.local import LocalEngine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `lesson`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar=", ".join(("list", "check", "run", "print")))
    listing = actions.add_parser("list", help="list lessons, and files that cannot be read as lessons")
    check = actions.add_parser("check", help="check a file with a lesson; errors name file and line")
    check.add_argument("file", type=Path, metavar="FILE")
    run = actions.add_parser("run", help="measure every step of a lesson on this machine, and print the results")
    declare(
        run,
        {
            "name NAME": "",
            "--step LETTER": "only this step",
        },
        default="",
    )
    declare(
        actions.add_parser("print", help="write a printable sheet: one HTML file"),
        {
            "name NAME": "",
            "--out FILE.html": {"type": Path, "required": True},
            "--answered": "with answers measured on this machine, for the teacher",
        },
    )
    for action in (listing, check, run):
        action.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Do what is asked for and return the exit code."""
    return {"list": _list, "check": _check, "run": _run, "print": _print}[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    found = catalog()
    if arguments.json:
        print_json(
            {
                "lessons": [_about(lesson) for lesson in found.lessons.values()],
                "unreadable": dict(found.unreadable),
                "own_folder": str(lessons_directory()),
            }
        )
        return EXIT_OK
    rows = [(lesson.name, f"{lesson.minutes} min", lesson.title, lesson.question) for lesson in found.lessons.values()]
    print_columns([("lesson", "takes", "title", "question"), *rows])
    for reason in found.unreadable.values():
        print(f"  unreadable: {reason}")
    return EXIT_OK


def _check(arguments: argparse.Namespace) -> int:
    lesson = lesson_at(arguments.file)
    devices: Sequence[Device] = discover()
    rehearsed = [rehearse(step, devices, arguments.file.name) for step in lesson.steps]
    if arguments.json:
        print_json(_about(lesson) | {"checks": sum(rehearsed)})
    else:
        print(f"{arguments.file}: {len(lesson.steps)} steps, {sum(rehearsed)} checks: a valid lesson")
    return EXIT_OK


def _run(arguments: argparse.Namespace) -> int:
    lesson = catalog().lesson(arguments.name)
    steps = [lesson.step(arguments.step)] if arguments.step else lesson.steps
    reports = []
    with _warm_engine() as (engine, devices):
        for judged, seconds in _judged(steps, engine, devices):
            reports.append(_json(judged, seconds))
            if arguments.json:
                continue
            print(f"\n{judged.step.letter}  {judged.step.title}  ({seconds:.1f} s)")
            for check in reports[-1]["checks"]:
                print(f"   {check['ask']}: {check['answer'] or check['why'] or check['outcome']}")
                if check["said"]:
                    print(f"   {check['said']}")
    if arguments.json:
        print_json({"lesson": _about(lesson), "steps": reports})
    guessed = [check for step in reports for check in step["checks"] if check["guess"]]
    return EXIT_FAILED if any(check["outcome"] == GuessOutcome.NOT_MEASURED for check in guessed) else EXIT_OK


@contextmanager
def _warm_engine() -> Iterator[tuple[LocalEngine, Sequence[Device]]]:
    """Open an engine on the devices of this machine, the first of them with the peaks that texts name."""
    devices = list(discover())
    with closing(LocalEngine(devices)) as engine:
        devices[0] = engine.warm(devices[0])
        yield engine, devices


def _judged(
    steps: Sequence[LessonStep], engine: LocalEngine, devices: Sequence[Device]
) -> Iterator[tuple[JudgedStep, float]]:
    """Measure and judge each step; yield it with the seconds it took. A task may be reached with what came before."""
    own = list[QuantityRow]()
    for step in steps:
        started_s = time.perf_counter()
        tasks = tasks_of(step, devices)
        measured = {index: _done(task.work, engine) for index, task in enumerate(tasks) if task.work is not None}
        names = names_of(step, devices, measured, tasks)
        own += [row for row in names.rows if row.labels.get("source") == Origin.LIVE.label]
        yield judged_by(step, names, {}, own), time.perf_counter() - started_s


def _done(work: Experiment | Activity, engine: LocalEngine) -> Measured:
    if isinstance(work, Activity):
        return perform_on(engine, work)[-1]
    results: dict[Case, Result] = {}

    def take(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event

    for batch in batches_of(work.cases()):
        engine.measure(batch, take, lambda: False)
    return tuple(results[case] for case in work.cases())


def _about(lesson: Lesson) -> dict[str, Any]:
    return {
        "name": lesson.name,
        "title": lesson.title,
        "question": lesson.question,
        "minutes": lesson.minutes,
        "rows": list(lesson.rows),
        "steps": [step.title for step in lesson.steps],
        "digest": lesson.digest,
    }


def _json(done: JudgedStep, seconds: float) -> dict[str, Any]:
    return {
        "step": done.step.letter,
        "title": done.step.title,
        "seconds": round(seconds, 2),
        "checks": [
            {
                "guess": judged.check.guess or None,
                "ask": done.step.guesses[judged.check.guess].ask if judged.check.guess else done.step.title,
                "outcome": str(judged.outcome),
                "answer": judged.answer or None,
                "why": judged.why or None,
                "said": judged.said or None,
            }
            for judged in done.checks
        ],
    }


def _print(arguments: argparse.Namespace) -> int:
    check_writable(arguments.out, (".html",))
    lesson = catalog().lesson(arguments.name)
    steps: Sequence[JudgedStep] = ()
    where = ""
    if arguments.answered:
        with _warm_engine() as (engine, devices):
            steps = [judged for judged, _ in _judged(lesson.steps, engine, devices)]
            versions = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
            where = (
                f"{', '.join(device.title for device in devices)}, {datetime.now(UTC).date().isoformat()}, {versions}"
            )
    arguments.out.write_text(_sheet(lesson, steps, where), encoding="utf-8")
    print(f"Wrote {arguments.out}: open it in a browser, and print it")
    return EXIT_OK


# A lesson on paper: one self-contained HTML file, blank to be filled in, or with this machine's answers.


def _sheet(lesson: Lesson, answered: Sequence[JudgedStep] = (), where: str = "") -> str:
    """Return the sheet of a lesson as HTML.

    Args:
        answered: its steps as measured on this machine; none: the sheet is blank.
        where: the machine, the day and the versions of the answers.
    """
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")

    def markdown(text: str) -> Markup:
        return Markup(renderer.render(text.replace("____", r"\_" * 8)))

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters |= {"markdown": markdown, "name_of": name_of, "with_colon": with_colon}
    return environment.from_string((FOLDER / "sheet.html.jinja").read_text(encoding="utf-8")).render(
        lesson=lesson,
        answered={judged.step.letter: judged for judged in answered},
        where=where,
        style=Markup((FOLDER / "sheet.css").read_text(encoding="utf-8")),
        always=(CANNOT_TELL, NO_IDEA),
        mistakes=module_of(MistakeBlock, "lesson_block"),
    )
