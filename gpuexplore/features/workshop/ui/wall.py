"""The wall: what a room is at, drawn for a projector, which redraws itself."""

from collections import Counter
from collections.abc import Callable, Hashable
from html import escape

import altair as alt
import streamlit as st

from gpuexplore.analysis.figure import LessonFigure
from gpuexplore.core.errors import GpuExploreError, StoreUnavailable
from gpuexplore.core.units import format_seconds
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
from gpuexplore.ui.shared.qr import qr_code
from gpuexplore.ui.url_widgets import show_problem

SPECS: Shared[dict[str, object]] = Shared(60)
NOBODY = "No guesses yet."
STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding: 4rem 3rem 1rem; max-width: none; }
[data-testid="stMarkdownContainer"] p { font-size: 26px; line-height: 1.35; }
[data-testid="stHeading"] h1 { font-size: 46px; }
.people { display: flex; flex-wrap: wrap; gap: 8px; }
.people div { border: 2px solid #80849566; border-radius: 8px; padding: 4px 12px; font-size: 22px; min-width: 34px;
  height: 44px; max-width: 230px; box-sizing: border-box; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.people .begun { border-color: #c6871c; } .people .done { border-color: #00816e; background: #00816e; color: #fff; }
</style>"""


def show_wall(room: Room, address: str) -> None:
    """Show the wall of a room; it redraws itself.

    Args:
        room: the room.
        address: of it, as visitors reach it.
    """
    st.html(STYLE)
    st.fragment(_draw, run_every=1.0)(room, address)


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
    words, code = st.columns([6, 1], gap="large", vertical_alignment="center")
    with words:
        st.title(plain(column.sentence if column else now.title or "Welcome"), anchor=False)
        said = [f"**{spoken(now.code)}** at {address.partition('?')[0].partition('://')[2]}"]
        said.append(f"{len(facts.people)} joined")
        if column and column.task.left_s is not None:
            said.append(f"**{time_left(column.task)}**")
        if column and not column.task.takes_answers:
            said.append(":material/lock: answers are closed")
        if following := _next_step(column):
            said.append(f"next: {plain(following)}")
        st.markdown(" · ".join(said))
        if column and now.message:
            st.markdown(f":material/campaign: {plain(now.message)}")
    code.image(qr_code(address), width=150)
    if column is None:
        st.markdown(plain(now.message) or "The next task is shown here.")
        _show_people(now, facts, None)
        return
    chart, people = st.columns([3, 1], gap="large")
    with chart:
        if tasks[-1].hidden:
            st.markdown(":material/visibility_off: Results are hidden for now.")
        else:
            _show_charts(now, facts, column)
    with people:
        _show_people(now, facts, column)


def _next_step(column: Column | None) -> str:
    if column is None or column.lesson is None or column.step is None:
        return ""
    step_number = column.lesson.steps.index(column.step) + 1
    return column.lesson.steps[step_number].title if step_number < len(column.lesson.steps) else ""


def _show_charts(room: Room, facts: RoomFacts, column: Column) -> None:
    """Show what was guessed, until it is revealed what was measured, and then both."""
    asked = (
        len(column.step.of(GuessBlock)) if column.step else int(column.goal is not None and column.goal.kind.is_guessed)
    )
    measured = results_for(facts, column) if column.task.revealed or not asked else ()
    # All charts together have 720 pixels: a screen of 1080 less the heading.
    height = 720 // max(1, asked + bool(measured))
    _show_guesses(facts, column, height=height)
    if measured:
        names = {person.number: person.name for person in facts.people} if room.names_shown else None
        _show(
            lambda: results_chart(measured, names),
            (facts.key, column.key, room.names_shown),
            f"wall.results.{column.task.number}",
            height=height,
        )
    elif not asked:
        st.markdown("Results appear here as they are measured.")


def _show_guesses(facts: RoomFacts, column: Column, *, height: int) -> None:
    """Show the guesses at everything that is guessed."""
    if column.goal:
        if not column.goal.kind.is_guessed:
            return
        given = [guess.guess for guess in facts.guesses_at(column.task).values()]
        truth = truth_of(facts, column) if column.task.revealed else None
        if given:
            _show(
                lambda: charts.guesses(given, format_seconds, truth),
                (facts.key, column.key),
                f"wall.guesses.{column.task.number}",
                height=height,
            )
        else:
            st.markdown(NOBODY)
        return
    guesses = column.step.of(GuessBlock) if column.step else ()
    judged = _judged(column) if column.task.revealed and guesses else None
    for guess in guesses:
        st.markdown(f"**{plain(guess.ask)}**")
        _show_answers(facts, column, guess, judged=judged, height=height)


def _judged(column: Column) -> JudgedStep | None:
    try:
        return of_this_machine(column.step) if column.step else None
    except GpuExploreError as error:  # a step of one's own lesson may ask for what there is not
        show_problem(error)
        return None


def _show_answers(
    facts: RoomFacts, column: Column, guess: GuessBlock, *, judged: JudgedStep | None, height: int
) -> None:
    answers = [answer.guesses.get(guess.id) for answer in latest_answers(facts, column).values()]
    given = [answer for answer in answers if answer is not None]
    if not given:
        st.markdown(NOBODY)
        return
    truth = next((check.truth for check in judged.checks if check.check.guess == guess.id), None) if judged else None
    key = f"wall.answers.{column.task.number}.{guess.id}"
    of = (facts.key, column.key, guess.id, str(truth))
    if guess.choices:
        counts = Counter(given)
        listed = {choice: counts[choice] for choice in (*guess.choices, CANNOT_TELL)}
        _show(lambda: charts.choices(listed, {truth} if isinstance(truth, str) else set()), of, key, height=height)
        return
    number = truth.value / UNITS[guess.unit].value if isinstance(truth, LessonFigure) else None
    _show(
        lambda: charts.guesses([float(each) for each in given], lambda each: f"{each:,.3g} {guess.unit}", number),
        of,
        key,
        height=height,
    )


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
    tiles = [
        f'<div class="{classes[states[person.number]]}">{escape(person.name) if room.names_shown else "&nbsp;"}</div>'
        for person in facts.people
    ]
    st.html(f'<div class="people">{"".join(tiles)}</div>')
