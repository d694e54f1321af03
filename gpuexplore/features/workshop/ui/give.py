"""What the leader of a room asks for: a lesson step by step, or a goal, and what is open, shown and timed of it."""

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from gpuexplore.errors import GpuExploreError, InvalidInput
from gpuexplore.features.lessons.lesson.catalog import catalog
from gpuexplore.features.workshop.goals import KINDS, goal_of
from gpuexplore.features.workshop.goals.kinds import Kind, Setting
from gpuexplore.features.workshop.report.facts import Column
from gpuexplore.features.workshop.ui import known
from gpuexplore.features.workshop.ui.task import time_left
from gpuexplore.rooms import ALL_STEPS, LESSON, Room, RoomTask
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import show_problem

MINUTES = (1, 5)
TITLES: Mapping[str, str] = {LESSON: "Follow a lesson together"} | {kind.name: kind.title for kind in KINDS.values()}


def show_current(room: Room, column: Column, task: RoomTask) -> None:
    """Show what a room is at to its leader, with everything that can be done with it."""
    with st.container(border=True):
        st.markdown(f"### {plain(column.sentence)}")
        said = [
            ":material/lock: answers are closed" if not task.takes_answers else ":material/lock_open: answers count"
        ]
        said += [time_left(task)] if task.left_s is not None else []
        st.markdown(" · ".join(said))
        with st.container(horizontal=True):
            _offer_marks(room, task)
        with st.container(horizontal=True):
            for minutes in MINUTES:
                if st.button(
                    f"Give {minutes} min", icon=":material/timer:", help="From now on", key=f"rooms.time.{minutes}"
                ):
                    do(partial(_time, room, task, minutes * 60.0))
            if task.left_s is not None and st.button("No timer", icon=":material/timer_off:"):
                do(lambda: _time(room, task, None))
        if column.lesson and column.step:
            _offer_steps(room, column, task)


def _offer_marks(room: Room, task: RoomTask) -> None:
    number = task.number
    if task.revealed:
        if st.button("Take back", icon=":material/visibility_off:", help="The wall shows guesses alone again"):
            do(lambda: store().mark_task(owner(), room, number, marks={"revealed": False, "frozen": False}))
    elif st.button(
        "Reveal", icon=":material/visibility:", type="primary", help="The wall shows what was measured; answers close"
    ):
        do(lambda: store().mark_task(owner(), room, number, marks={"revealed": True, "frozen": True}))
    if not task.revealed:
        frozen = task.frozen_utc is not None
        label = "Open answers" if frozen else "Freeze"
        if st.button(label, icon=":material/ac_unit:", help="Whether what is answered now counts"):
            do(lambda: store().mark_task(owner(), room, number, marks={"frozen": not frozen}))
    label = "Show on the wall" if task.hidden else "Hide on the wall"
    if st.button(label, icon=":material/desktop_windows:"):
        do(lambda: store().mark_task(owner(), room, number, marks={"hidden": not task.hidden}))


def _time(room: Room, task: RoomTask, left_s: float | None) -> None:
    store().time_task(owner(), room, task.number, left_s=left_s)


def _offer_steps(room: Room, column: Column, task: RoomTask) -> None:
    """Offer the next step of the lesson, and to let go."""
    lesson, step = column.lesson, column.step
    if lesson is None or step is None or task.settings.get("step") == ALL_STEPS:
        return
    place = lesson.steps.index(step) + 1
    with st.container(horizontal=True):
        if place < len(lesson.steps):
            following = lesson.steps[place]
            if st.button(
                f"Open step {following.letter}: {plain(following.title)}",
                icon=":material/arrow_forward:",
                type="primary",
            ):
                _give(room, LESSON, {"lesson": lesson.name, "step": following.letter})
        if st.button("Open all steps", icon=":material/lock_open:", help="Everybody goes at their own pace"):
            _give(room, LESSON, {"lesson": lesson.name, "step": ALL_STEPS})


def offer_next(room: Room) -> None:
    """Offer what a room can be asked for next."""
    kind = st.selectbox("What", TITLES, format_func=lambda name: TITLES[name], key="rooms.kind")
    with st.form(f"rooms.give.{kind}", border=False):
        if kind == LESSON:
            lessons = catalog().lessons
            name = st.selectbox("Lesson", lessons, format_func=lambda name: lessons[name].title)
            pressed = st.form_submit_button("Open its first step", icon=":material/school:", type="primary")
            if pressed and name:
                _give(room, LESSON, {"lesson": name, "step": lessons[name].steps[0].letter})
            return
        settings = _settings(KINDS[kind])
        pressed = st.form_submit_button("Ask for it", icon=":material/flag:", type="primary")
    if pressed:
        try:
            goal = goal_of(kind, settings)
        except InvalidInput as error:
            show_problem(error)
            return
        _give(room, kind, goal.settings)


def _settings(kind: Kind) -> dict[str, str]:
    """Draw a field for each setting of a kind of goals."""
    columns = st.columns(len(kind.settings))
    return {setting.name: _field(kind, setting, column) for setting, column in zip(kind.settings, columns, strict=True)}


def _field(kind: Kind, setting: Setting, column: "st.delta_generator.DeltaGenerator") -> str:
    key = f"rooms.give.{kind.name}.{setting.name}"
    if setting.choices:
        place = setting.choices.index(setting.default)
        return str(column.selectbox(setting.title, setting.choices, index=place, key=key))
    return str(column.text_input(setting.title, setting.default, max_chars=40, key=key))


def _give(room: Room, kind: str, settings: Mapping[str, str]) -> None:
    do(lambda: store().add_task(owner(), room, kind=kind, settings=settings))


def do(change: Callable[[], object]) -> None:
    """Do what a leader asks for, and show it, or say why not."""
    try:
        change()
    except GpuExploreError as error:
        show_problem(error)
        return
    known.forget()
    st.rerun()
