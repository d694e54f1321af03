"""The wall: what a room is at, drawn for a projector, which redraws itself."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from html import escape
from math import log

import altair as alt
import streamlit as st

from gpuexplore.analysis.figure import LessonFigure
from gpuexplore.core import GpuExploreError, StoreUnavailable, format_seconds
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, UNITS, GuessBlock
from gpuexplore.features.lessons.lesson.outcome import JudgedStep
from gpuexplore.features.lessons.ui.view import of_this_machine
from gpuexplore.features.workshop import chart as charts
from gpuexplore.features.workshop.chart import results_chart, results_for
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, State, latest_answers, truth_of
from gpuexplore.features.workshop.ui import known
from gpuexplore.features.workshop.ui.task import time_left
from gpuexplore.rooms import Room, spoken
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.present import for_the_back_row
from gpuexplore.ui.session import note_visit
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_spec, spec_of
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.qr import qr_code
from gpuexplore.ui.url_widgets import show_problem

SPECS: Shared[dict[str, object]] = Shared(60)
NOBODY = '<div class="empty">No guesses yet</div>'
STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding: 2rem 3rem 1rem; max-width: none; }
[data-testid="stMarkdownContainer"] p { font-size: max(20px, 3vh); line-height: 1.35; }
[data-testid="stHeading"] h1 { font-size: max(32px, 5vh); }
.empty { font-size: max(36px, 8vh); height: 60vh; display: flex; align-items: center; justify-content: center;
  color: #808495; }
.people { display: flex; flex-wrap: wrap; gap: 8px; }
.people div { border: 2px solid #80849566; border-radius: 8px; padding: 4px 14px; font-size: 28px; min-width: 46px;
  height: 54px; max-width: 260px; box-sizing: border-box; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.people div:last-child { animation: pop 0.6s; }
@keyframes pop { from { transform: scale(0); } 70% { transform: scale(1.2); } }
.code { font-size: min(200px, 15vw); font-weight: 700; line-height: 1; white-space: nowrap; }
[class*="st-key-wall.guesses"] .mark-rule line, [class*="st-key-wall.answers"] .mark-rule line
  { animation: fall 1.5s ease-in; }
@keyframes fall { from { transform: scaleY(0); } }
.people .begun { border-color: #c6871c; } .people .done { border-color: #00816e; background: #00816e; color: #fff; }
</style>"""


def show_wall(room: Room, address: str) -> None:
    """Show the wall of a room; it redraws itself.

    Args:
        room: the room.
        address: of it, as visitors reach it.
    """
    st.html(STYLE)
    redrawn(_draw, 1.0)(room, address)


def _draw(room: Room, address: str) -> None:
    try:
        note_visit()
        now = known.as_it_is_now(room)
        facts = known.facts_of(room)
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)
        return
    if now is None:
        known.leave_deleted(room)
    tasks = known.tasks_of(room)
    column = next((each for each in reversed(facts.columns) if tasks and each.task.number == tasks[-1].number), None)
    if column is None:
        _show_lobby(now, facts, address)
        return
    words, code = st.columns([6, 1], gap="large", vertical_alignment="center")
    with words:
        st.title(plain(column.sentence), anchor=False)
        said = [f"**{spoken(now.code)}** at {address.partition('?')[0].partition('://')[2]}"]
        said.append(f"{len(facts.people)} joined")
        if column.task.left_s is not None:
            said.append(f"**{time_left(column.task)}**")
        if not column.task.takes_answers:
            said.append(":material/lock: answers are closed")
        if following := _next_step(column):
            said.append(f"next: {plain(following)}")
        st.markdown(" · ".join(said))
        if now.message:
            st.markdown(f":material/campaign: {plain(now.message)}")
    code.image(qr_code(address), width=150)
    chart, people = st.columns([3, 1], gap="large")
    with chart:
        if tasks[-1].hidden:
            st.markdown(":material/visibility_off: Results are hidden for now.")
        else:
            _show_charts(now, facts, column)
    with people:
        _show_people(now, facts, column)


def _show_lobby(room: Room, facts: RoomFacts, address: str) -> None:
    """Show how to join, as large as the screen, and those who have joined."""
    code, words = st.columns(2, gap="large", vertical_alignment="center")
    code.image(qr_code(address), width="stretch")
    with words:
        st.title(plain(room.title or "Welcome"), anchor=False)
        st.html(f'<div class="code">{spoken(room.code)}</div>')
        st.markdown(f"Join at **{address.partition('?')[0].partition('://')[2]}** · {len(facts.people)} joined")
        if room.message:
            st.markdown(f":material/campaign: {plain(room.message)}")
        _show_people(room, facts, None)


def _next_step(column: Column) -> str:
    if column.lesson is None or column.step is None:
        return ""
    step_number = column.lesson.steps.index(column.step) + 1
    return column.lesson.steps[step_number].title if step_number < len(column.lesson.steps) else ""


def _show_charts(room: Room, facts: RoomFacts, column: Column) -> None:
    """Show what was guessed, until it is revealed what was measured, and then both."""
    asked = (
        len(column.step.of(GuessBlock)) if column.step else int(column.goal is not None and column.goal.kind.is_guessed)
    )
    measured = results_for(facts, column) if column.task.revealed or not asked else ()
    # All charts together have 760 pixels: a screen of 1080 less the heading.
    height = 760 // max(1, asked + bool(measured))
    _show_guesses(room, facts, column, height=height)
    if measured:
        names = {person.number: person.name for person in facts.people} if room.names_shown else None
        _show(
            lambda: results_chart(measured, names),
            (facts.key, column.key, room.names_shown),
            f"wall.results.{column.task.number}",
            height=height,
        )
    elif not asked:
        st.html('<div class="empty">No results yet</div>')


def _show_guesses(room: Room, facts: RoomFacts, column: Column, *, height: int) -> None:
    """Show the guesses at everything that is guessed."""
    names = {person.number: person.name for person in facts.people} if room.names_shown else {}
    of = (facts.key, column.key, room.names_shown)
    if column.goal:
        if not column.goal.kind.is_guessed:
            return
        guessed = {number: guess.guess for number, guess in facts.guesses_at(column.task).items()}
        truth = truth_of(facts, column) if column.task.revealed else None
        show = partial(_show, of=of, key=f"wall.guesses.{column.task.number}", height=height)
        _show_numbers(names, guessed, format_seconds, truth=truth, show=show)
        return
    guesses = column.step.of(GuessBlock) if column.step else ()
    judged = _judged(column) if column.task.revealed and guesses else None
    for guess in guesses:
        st.markdown(f"**{plain(guess.ask)}**")
        answers = {number: each.guesses.get(guess.id) for number, each in latest_answers(facts, column).items()}
        given = {number: answer for number, answer in answers.items() if answer is not None}
        truths = [check.truth for check in judged.checks if check.check.guess == guess.id] if judged else []
        right = truths[0] if truths else None
        key = f"wall.answers.{column.task.number}.{guess.id}"
        show = partial(_show, of=(*of, guess.id, str(right)), key=key, height=height)
        if guess.choices and given:
            counts = Counter(given.values())
            listed = {choice: counts[choice] for choice in (*guess.choices, CANNOT_TELL)}
            show(partial(charts.choices, listed, {right} if isinstance(right, str) else set()))
            continue
        measured = right.value / UNITS[guess.unit].value if isinstance(right, LessonFigure) else None
        numbers = {number: float(each) for number, each in given.items()}
        _show_numbers(names, numbers, partial(_in_unit, unit=guess.unit), truth=measured, show=show)


def _in_unit(number: float, unit: str) -> str:
    return f"{number:,.3g} {unit}"


def _judged(column: Column) -> JudgedStep | None:
    try:
        return of_this_machine(column.step) if column.step else None
    except GpuExploreError as error:  # a step of one's own lesson may ask for what there is not
        show_problem(error)
        return None


def _show_numbers(
    names: Mapping[int, str],
    given: Mapping[int, float],
    words: Callable[[float], str],
    *,
    truth: float | None,
    show: Callable[..., None],
) -> None:
    """Show guessed numbers, and once it is revealed what was measured and whose guess is the nearest.

    Args:
        names: of participants; empty where they are hidden.
        given: guesses by the number of a participant.
        words: a number with its unit.
        truth: what was measured; None as long as it is kept back.
        show: draws the chart that it is called with.
    """
    if not given:
        st.html(NOBODY)
        return
    numbers = {number: guess for number, guess in given.items() if guess > 0}
    if truth and numbers:
        number, guess = min(numbers.items(), key=lambda item: abs(log(item[1] / truth)))
        who = f"**{plain(names[number])}**, " if number in names else ""
        st.markdown(f"Measured: **{words(truth)}**. Nearest guess: {who}{words(guess)}.")
    show(partial(charts.guesses, list(given.values()), words, truth))


def _show(build: Callable[[], alt.TopLevelMixin], of: Hashable, key: str, *, height: int) -> None:
    """Show a chart in type for the back row, made once for all walls of a room."""

    def made() -> dict[str, object]:
        return for_the_back_row(spec_of(build)) | {"height": height}

    show_spec(SPECS.get((key, of, height), made), key=key)


def _show_people(room: Room, facts: RoomFacts, column: Column | None) -> None:
    """Show who is how far as a quiet grid; names only where the leader wants them."""
    done = known.standings_of(facts, column) if column else {}
    states = {
        person.number: done[person.number].state if person.number in done else State.NOTHING for person in facts.people
    }
    counts = Counter(states.values())
    if column:
        st.markdown(f"**{counts[State.DONE]} of {len(states)} done**, {counts[State.BEGUN]} begun")
    classes = {State.NOTHING: "", State.BEGUN: "begun", State.DONE: "done"}
    words = {
        person.number: escape(person.name) if room.names_shown else position
        for position, person in enumerate(facts.people, start=1)
    }
    tiles = [f'<div class="{classes[states[number]]}">{said}</div>' for number, said in words.items()]
    st.html(f'<div class="people">{"".join(tiles)}</div>')
