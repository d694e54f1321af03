"""How far everybody in a room is, from made-up guesses, answers and runs; and the files that say so."""

import csv
import io
from dataclasses import replace

import pytest

from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.blocks import CheckBlock, GuessBlock
from gpuexplore.features.workshop.chart import _points_of, results_for
from gpuexplore.features.workshop.report import COLUMNS, FORMATS, names_of
from gpuexplore.features.workshop.report.facts import (
    RoomFacts,
    State,
    columns_of,
    runs_of,
    standings,
    stuck,
    truth_of,
    wrong_guesses,
)
from gpuexplore.rooms import ALL_STEPS, LESSON, Participant, Room, RoomGuess, RoomState, RoomTask
from gpuexplore.store.entries import Answer
from gpuexplore.store.room_tasks import AskedRun
from tests.analysis.made import ok

ROOM = Room(1, "KTRMWX", "Course", "2026-01-02T10:00:00", "2026-01-02T14:00:00", None, RoomState.OPEN)
ADA, BOB, EVE = (
    Participant(n, name, "2026-01-02T10:01:00", False, 1.0) for n, name in enumerate(("Ada", "Bob", "=E"), 1)
)
GUESS = RoomTask(7, "guess", {"operation": "matmul", "size": "100", "dtype": "fp32"}, "2026-01-02T10:05:00")
SHARE = RoomTask(8, "share", {"percent": "50"}, "2026-01-02T10:05:00")
FIRST = next(
    lesson for lesson in catalog().lessons.values() if lesson.steps[0].of(GuessBlock) and lesson.steps[0].of(CheckBlock)
)


def results(*given, at="2026-01-02T10:10:00"):
    """Return runs of (participant, run, seconds), each with its result."""
    return [
        (AskedRun(run, "a laptop" if run == "far" else None, ((participant, at),), 1), ok(time_s))
        for participant, run, time_s in given
    ]


def facts(*tasks, guesses=(), measured=(), answers=(), people=(ADA, BOB, EVE)):
    of = {asked.run_id: [result] for asked, result in measured}
    runs = tuple(runs_of([asked for asked, _ in measured], lambda ids: {name: of[name] for name in ids}).values())
    return RoomFacts(ROOM, people, tasks, tuple(guesses), tuple(answers), runs)


def at(found):
    (column,) = found.columns
    return standings(found, column)


def test_a_guess_is_judged_by_the_median_of_what_the_room_measured():
    guesses = [RoomGuess(7, who, guess, "2026-01-02T10:06:00") for who, guess in ((1, 4.1e-6), (2, 9e-6), (3, 1e-3))]
    found = facts(GUESS, guesses=guesses, measured=results((1, "r1", 4e-6), (2, "r2", 5e-6), (None, "r3", 6e-6)))

    assert truth_of(found, found.columns[0]) == pytest.approx(5e-6)
    assert {who: (each.state, each.outcome) for who, each in at(found).items()} == {
        1: (State.DONE, "right"),
        2: (State.DONE, "close"),
        3: (State.BEGUN, "off"),
    }
    assert wrong_guesses(found, found.columns[0]) == [("about 1.00 ms", 1)]


def test_a_goal_is_reached_by_the_best_run_since_it_was_set():
    slow, fast = results((1, "r1", 8e-6), (1, "r2", 3e-6))
    early = results((2, "r3", 3e-6), at="2026-01-02T10:01:00")

    found = at(facts(SHARE, measured=[slow, fast, *early]))
    assert (found[1].state, found[1].outcome, found[1].run.run_id) == (State.DONE, "reached", "r2")
    assert 2 not in found
    assert at(facts(SHARE, measured=[slow]))[1].state is State.BEGUN


def points_by_name(found):
    """Return the points of the first thing that was asked for, in colours that stand for people."""
    names = {person.number: person.name for person in found.people}
    return _points_of(results_for(found, found.columns[0]), names)


def test_what_cannot_be_true_reaches_nothing_and_is_drawn_as_such():
    found = facts(SHARE, measured=results((1, "far", 1e-9), (2, "r2", 4e-6)))

    assert at(found).keys() == {2}
    points = points_by_name(found)
    assert [(point.who, point.is_wrong) for point in points] == [("Ada", True), ("Bob", False)]
    assert "a laptop" in points[0].about


def test_results_that_arrive_later_belong_to_the_run_they_are_of_and_others_are_not_read_again():
    asked, of = [AskedRun(name, None, ((1, "2026-01-02T10:10:00"),), 1) for name in ("r1", "r2")], ok(8e-6)
    known = runs_of(asked, lambda names: {name: [of] for name in names})
    more = [replace(asked[0], results=2), asked[1]]

    found = runs_of(more, lambda names: {name: [of, ok(3e-6, size=200)] for name in names if name == "r1"}, known)
    assert [len(run.analysis.results) for run in found.values()] == [2, 1]
    assert found["r2"] is known["r2"]


def test_a_run_that_several_asked_for_is_each_ones():
    run = AskedRun("r1", None, ((1, "2026-01-02T10:10:00"), (2, "2026-01-02T10:01:00"), (3, "2026-01-02T10:11:00")), 1)
    found = facts(SHARE, measured=[(run, ok(3e-6))])

    assert at(found).keys() == {1, 3}  # the second asked for it before the goal was set
    assert points_by_name(found)[0].who == "Ada and 2 more"


def answer(who, number, guess, outcome, at="2026-01-02T10:07:00"):
    step = FIRST.steps[0]
    name = step.of(CheckBlock)[0].guess
    runs = ("r1",)
    return who, Answer(number, "x", FIRST.name, FIRST.digest, step.letter, {name: guess}, runs, (outcome,), at)


def lesson_task(step, **about):
    return RoomTask(9, LESSON, {"lesson": FIRST.name, "step": step}, "2026-01-02T10:05:00", **about)


def test_the_last_answer_before_a_step_was_frozen_counts():
    answers = [
        answer(1, 1, "5", "off"),
        answer(1, 2, "2", "right", at="2026-01-02T10:08:00"),
        answer(1, 3, "9", "off", at="2026-01-02T10:20:00"),
        answer(2, 4, "5", "off"),
    ]
    task = lesson_task(FIRST.steps[0].letter, frozen_utc="2026-01-02T10:10:00")
    found = facts(task, answers=answers)

    assert {who: each.outcome for who, each in at(found).items()} == {1: "right", 2: "off"}
    assert wrong_guesses(found, found.columns[0])[0][0].startswith("5")


def test_a_lesson_that_is_let_go_has_a_column_for_each_step_once():
    tasks = [lesson_task(FIRST.steps[0].letter), replace(lesson_task(ALL_STEPS), number=10)]

    assert [column.title for column in columns_of(tasks)] == [step.letter for step in FIRST.steps]
    newer = [replace(SHARE, kind="dance"), lesson_task("§"), replace(lesson_task("a"), settings={})]
    assert list(columns_of(newer)) == []


def test_who_is_here_and_has_not_answered_for_a_while_is_stuck():
    away = replace(BOB, seen_s=100.0)
    found = facts(SHARE, measured=results((1, "r1", 3e-6)), people=(ADA, away, EVE))

    assert stuck(found, found.columns[0], "2026-01-02T10:09:00", 30.0) == ["=E"]
    assert stuck(found, found.columns[0], "2026-01-02T10:06:00", 30.0) == []


def test_a_file_has_who_did_what_and_no_formula():
    found = facts(SHARE, measured=results((1, "r1", 3e-6), (3, "far", 8e-6)))
    rows = list(csv.DictReader(io.StringIO(FORMATS[".csv"].write(found, names_of(found, anonymous=False)).decode())))

    assert tuple(rows[0]) == COLUMNS
    assert [(row["name"], row["outcome"], row["run"], row["measured"]) for row in rows] == [
        ("'=E", "", "far", "a laptop"),
        ("Ada", "reached", "r1", "on this server"),
    ]


def test_a_file_without_names_has_none_and_is_alike_each_time_and_a_report_shows_them_as_they_are_typed():
    found = facts(SHARE, measured=results((1, "r1", 3e-6)))
    typed = replace(found, people=(replace(ADA, name="<script>x</script>"),))
    report = FORMATS[".html"].write(typed, names_of(typed, anonymous=False)).decode()

    for made in FORMATS.values():
        text = made.write(found, names_of(found, anonymous=True))
        assert b"Ada" not in text
        assert b"participant " in text
        assert text == made.write(found, names_of(found, anonymous=True))
    assert "&lt;script&gt;x&lt;/script&gt;" in report
    assert "Reach 50 % of the limit with matmul in fp32" in report
