"""The task of a participant of a room: the sentence, a guess where one is wanted, and their progress."""

from collections import OrderedDict
from typing import Any, Literal

import streamlit as st

from gpuexplore.core import (
    GpuExploreError,
    InvalidInput,
    StoreUnavailable,
    format_seconds,
    format_whole_seconds,
    once,
    read_seconds,
)
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome
from gpuexplore.features.lessons.ui.cards import TAB_STYLE
from gpuexplore.features.workshop.goals import LONGEST
from gpuexplore.features.workshop.report.facts import Column, Standing, State, columns_of, truth_of
from gpuexplore.features.workshop.ui import known
from gpuexplore.rooms import ALL_STEPS, LESSON, Participant, Room, RoomTask
from gpuexplore.ui.link import href
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import show_problem

GUESSES = "rooms.guesses"  # the session's key of what was guessed here, by task: seen before the next look


# Guesses that are not stored yet, by owner and task: each redraw tries again, so that none is lost. Not in the session:
# a page that is to redraw itself is stopped as soon as it asks for its session's state.
KEPT = OrderedDict[tuple[str, int], float]()


def show_task(room: Room, me: Participant) -> None:
    """Show a participant what a room is at; nothing where it was asked for nothing."""
    tasks = known.tasks_of(room)
    if not tasks:
        return
    task = tasks[-1]
    columns = list(columns_of([task]))
    with st.container(border=True):
        if task.left_s is not None:
            st.markdown(time_left(task))
        if task.kind == LESSON and task.settings.get("step") == ALL_STEPS and columns:
            lesson = columns[0].lesson
            st.markdown(f"### {plain(lesson.title if lesson else '')}")
            st.markdown("Every step is open: go at your own pace.")
            _open_lesson("Open the lesson", columns[0])
        elif columns:
            _show_column(room, me, columns[0])


def time_left(task: RoomTask) -> str:
    """Return how much time a task has left, for a reader."""
    left_s = task.left_s or 0.0
    return f":material/timer: {format_whole_seconds(left_s)} left" if left_s else ":material/timer_off: time is over"


def _show_column(room: Room, me: Participant, column: Column) -> None:
    st.markdown(f"### {plain(column.sentence)}")
    facts = known.facts_of(room)
    standing = known.standings_of(facts, column).get(me.number, Standing())
    guessed = column.goal is not None and column.goal.kind.is_guessed
    if guessed:
        _show_guess(room, column, standing)
    if not column.task.takes_answers:
        st.markdown(":material/lock: Answers are closed.")
    # What became of a guess is kept back until the leader reveals it.
    is_kept = bool(standing.guess) and column.goal is not None and not column.task.revealed
    outcome = "" if is_kept else standing.outcome
    icons = {
        "reached": ":material/check_circle:",
        GuessOutcome.RIGHT.value: ":material/check_circle:",
        GuessOutcome.CLOSE.value: ":material/near_me:",
        GuessOutcome.OFF.value: ":material/explore_off:",
    }
    words = [f"{icons.get(outcome, ':material/flag:')} **{outcome.capitalize()}.**" if outcome else ""]
    if standing.said:
        words.append(f"Your best: {plain(standing.said)}.")
    elif standing.state is State.BEGUN and not standing.guess:
        words.append("In progress.")
    if text := " ".join(filter(None, words)):
        st.markdown(text)
    if guessed and column.task.revealed and (truth := truth_of(facts, column)) is not None:
        st.markdown(f"The room measured **{format_seconds(truth)}** (median).")
    if column.step:
        _open_lesson("Open this step", column)
        return
    is_first = not (guessed and column.task.takes_answers and not standing.guess)
    kind: Literal["primary", "secondary"] = "primary" if is_first else "secondary"
    st.link_button("Measure", href(column.link), icon=":material/timer:", type=kind)


def _open_lesson(label: str, column: Column) -> None:
    """Draw a link that looks like a button, and opens all steps in the same tab."""
    _tab_link()(data={"href": href(column.link), "label": label}, key="rooms.lesson", width="content")


@once
def _tab_link() -> Any:
    """Return a component: Streamlit's own links open a tab each, and its HTML keeps no name of a tab."""
    js = """export default ({data, parentElement}) => {
      const link = parentElement.querySelector("a");
      link.href = data.href;
      link.textContent = data.label;
    }"""
    return st.components.v2.component(
        "gpuexplore_tab_link", html=f'{TAB_STYLE}<a class="lesson" target="gpuexplore-lesson"></a>', js=js
    )


def _show_guess(room: Room, column: Column, standing: Standing) -> None:
    mine = st.session_state.get(GUESSES, {}).get(column.task.number) or standing.guess
    if mine:
        st.markdown(f"You guessed **{mine}**.")
    _store_kept(room, column)
    if not column.task.takes_answers:
        return
    with st.form(f"rooms.guess.{column.task.number}", border=False):
        typed = st.text_input("Your guess", placeholder="2.5 ms", max_chars=40, help="A time with its unit")
        pressed = st.form_submit_button(
            "Guess again" if mine else "Guess",
            icon=":material/psychology_alt:",
            type="secondary" if mine else "primary",
        )
    if not pressed:
        return
    try:
        KEPT[owner(), column.task.number] = _read_guess(typed)
    except InvalidInput as error:
        show_problem(error)
        return
    if len(KEPT) > 1000:
        KEPT.popitem(last=False)
    _store_kept(room, column)


def _read_guess(text: str) -> float:
    """Return a guessed time in seconds.

    Raises:
        InvalidInput: it is none; says what is accepted.
    """
    seconds = read_seconds(text.strip()[:LONGEST])
    if seconds is None or not 0 < seconds <= 1e6:
        raise InvalidInput.of("guess", text, "times above 0 with their unit, like 90us or 2.5 ms")
    return seconds


def _store_kept(room: Room, column: Column) -> None:
    """Store a guess that is kept, and show the page with it; where the database is away, say so and keep it."""
    name = owner()
    number = column.task.number
    guess = KEPT.get((name, number))
    if guess is None:
        return
    try:
        store().give_guess(name, room, number, guess=guess)
    except StoreUnavailable as error:
        show_problem(error)
        st.markdown(
            f":material/sync: Your guess, **{format_seconds(guess)}**, will be stored once the database is available."
        )
        return
    except GpuExploreError as error:
        KEPT.pop((name, number), None)
        show_problem(error)
        return
    KEPT.pop((name, number), None)
    st.session_state.setdefault(GUESSES, {})[number] = format_seconds(guess)
    st.rerun()
