"""A lesson on a page: its steps and their states, one at a time, alone or as far as a room's leader has opened them."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.lessons.lesson.catalog import catalog
from gpuexplore.features.lessons.lesson.format import Lesson
from gpuexplore.features.lessons.ui.listing import Kind, answers_to, is_done, show_lessons, state_of, summary
from gpuexplore.features.lessons.ui.step import show_step
from gpuexplore.features.lessons.ui.teacher import show_teacher
from gpuexplore.rooms import ALL_STEPS, LESSON, Room, RoomTask, spoken
from gpuexplore.store.answers import Answer
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check, may, show_key
from gpuexplore.ui.session import note_visit, owner, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.url_widgets import segments, show_problem

LOOKS = 3  # a second: a step that is opened is there in two
FOLLOWED: Shared[tuple[tuple[Room, RoomTask], ...]] = Shared(2000)
VIEWS = ("learner", "instructor")


@dataclass(frozen=True, slots=True)
class Followed:
    """Progress of a room in a lesson.

    Attributes:
        room: the newest open one of the visitor that follows it.
        letters: of the steps that are open, in the lesson's order.
        closed: of those whose answers do not count any more.
        newest: the step that the room is at; empty where every step is open.
    """

    room: Room
    letters: tuple[str, ...]
    closed: frozenset[str]
    newest: str


def followed(lesson: Lesson) -> Followed | None:
    """Return how far the visitor's room is with a lesson; None where none follows it, or it let go."""
    name = owner()
    found = FOLLOWED.get((name, moment(LOOKS)), lambda: store().tasks_followed(name))
    mine = [(room, task) for room, task in found if task.kind == LESSON and task.settings.get("lesson") == lesson.name]
    if not mine:
        return None
    room = mine[-1][0]
    tasks = {str(task.settings.get("step")): task for where, task in mine if where.number == room.number}
    if ALL_STEPS in tasks:
        return None
    letters = tuple(step.letter for step in lesson.steps if step.letter in tasks)
    closed = frozenset(letter for letter in letters if not tasks[letter].takes_answers)
    return Followed(room, letters, closed, str(mine[-1][1].settings.get("step")))


def show() -> None:
    """Show the lesson that the link names, or all of them."""
    _take_key()
    found, name = catalog(), link.parameters().get("lesson")
    if name is not None:
        try:
            lesson = found.lesson(name)
        except InvalidInput as error:
            show_problem(error)
        else:
            _show_lesson(lesson)
            return
    show_lessons(found, _open)


def _open(name: str | None, step: str | None = None) -> None:
    link.write("lesson", name)
    link.write("step", step)
    link.write("view", None)
    st.rerun()


def _show_lesson(lesson: Lesson) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("All lessons", icon=":material/arrow_back:"):
            _open(None)
        view = _view()
    st.header(plain(lesson.title), anchor=False)
    st.markdown(f"{plain(lesson.question)} About {lesson.minutes} minutes.")
    if view == "instructor":
        show_teacher(lesson)
        return
    answers = answers_to(lesson)
    said = summary(lesson, answers)
    done = sum(map(is_done, answers.values()))
    st.progress(min(1.0, done / len(lesson.steps)), text=said or f"{len(lesson.steps)} steps")
    together = followed(lesson)
    letters = [step.letter for step in lesson.steps if together is None or step.letter in together.letters]
    if together is not None:
        st.fragment(_wait_for_leader, run_every=2.0)(lesson, together)
        if not letters:
            return
    letter = segments("Step", "step", letters, shown=lambda letter: _labelled(letter, answers))
    show_step(
        lesson, lesson.step(letter), answers.get(letter), is_closed=together is not None and letter in together.closed
    )
    _show_ways(lesson, letters, letter, is_answered=letter in answers)


def _wait_for_leader(lesson: Lesson, known: Followed) -> None:
    """Say who opens the steps, and show the page again once there is one more, or answers to one close."""
    note_visit()
    now = followed(lesson)
    if now != known:
        st.rerun()
    code = spoken(known.room.code)
    st.markdown(f":material/groups: Followed together in room **{code}**: its leader opens one step after the other.")


def _take_key() -> None:
    """Make a leader of a visitor by the leader's link, whose key leaves the address at once."""
    key = link.parameters().get("key")
    if key is None:
        return
    link.write("key", None)
    try:
        show_key(key)
    except InvalidInput as error:
        show_problem(error)


def _view() -> str:
    """Return the view that is shown; says so where the link asks for the instructor's, which is not allowed."""
    if may(Right.INSTRUCT):
        return segments("View", "view", VIEWS, shown=str.capitalize)
    if link.parameters().get("view") == "instructor":
        try:
            check(Right.INSTRUCT)
        except InvalidInput as error:
            show_problem(error)
    return VIEWS[0]


def _labelled(letter: str, answers: Mapping[str, Answer]) -> str:
    state = state_of(answers.get(letter))
    return f"{letter} · {state}" if state else letter


def _show_ways(lesson: Lesson, letters: list[str], letter: str, *, is_answered: bool) -> None:
    """Offer the step before and the one behind."""
    index = letters.index(letter)
    with st.container(horizontal=True):
        if index and st.button("Back", icon=":material/arrow_back:", key="lesson.back"):
            _open(lesson.name, letters[index - 1])
        if index + 1 < len(letters):
            kind: Kind = "primary" if is_answered else "secondary"
            label = "Next step" if is_answered else "Skip this step"
            if st.button(label, icon=":material/arrow_forward:", type=kind, key="lesson.next"):
                _open(lesson.name, letters[index + 1])
        elif (
            is_answered
            and len(letters) == len(lesson.steps)
            and st.button("All lessons", icon=":material/check:", type="primary", key="lesson.end")
        ):
            _open(None)
