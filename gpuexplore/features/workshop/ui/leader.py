"""A room for its leader: its code, the current question, all progress with an export, and its end."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from gpuexplore.core import GpuExploreError, InvalidInput, StoreUnavailable, format_whole_seconds
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.workshop.goals import KINDS, GoalKind, Setting, goal_of
from gpuexplore.features.workshop.report import FORMATS, ReportFormat, names_of
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, State, stuck, wrong_guesses
from gpuexplore.features.workshop.ui import known
from gpuexplore.features.workshop.ui.task import time_left
from gpuexplore.rooms import (
    ALL_STEPS,
    LESSON,
    LONGEST_MESSAGE,
    LONGEST_NAME,
    Room,
    RoomState,
    RoomTask,
    read_link,
    read_message,
    read_name,
    spoken,
)
from gpuexplore.ui.link import PARAMETERS
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import FIRST_PAGE
from gpuexplore.ui.session import note_visit, owner, store
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.qr import qr_code
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import show_problem

HERE_S = 30.0  # heard of within so long: pages say that they are there every ten
KEYS = "rooms.keys"  # the session's key of the keys of leaders' links, by code: the database has digests alone


def _show_progress(facts: RoomFacts) -> None:
    """Show who is in a room and how far each is with what it was asked for."""
    people = facts.people
    st.subheader(f"{len(people)} joined, {sum(each.seen_s < HERE_S for each in people)} here", anchor=False)
    if not people:
        st.markdown("No participants yet: show the code, or the QR code.")
        return
    columns = facts.columns[-8:]  # the newest things a room did
    if columns:
        _show_current(facts, columns[-1])
    states = {column.key: known.standings_of(facts, column) for column in columns}
    rows = []
    for each in people:
        row: dict[str, object] = {
            "Name": each.name,
            "Joined (UTC)": each.joined_utc[11:16],
            "Here": "yes" if each.seen_s < HERE_S else f"away for {format_whole_seconds(each.seen_s)}",
        }
        for task_number, column in enumerate(columns, start=len(facts.columns) - len(columns) + 1):
            standing = states[column.key].get(each.number)
            row[f"{task_number}. {column.title}"] = "" if standing is None else standing.outcome or standing.state.value
        rows.append(row)
    table_of(rows, {}).show(alt=f"Table of {len(people)} participants and their progress")


def _show_current(facts: RoomFacts, column: Column) -> None:
    done = sum(standing.state is State.DONE for standing in known.standings_of(facts, column).values())
    said = [f"**{done} of {len(facts.people)} done** with the current task."]
    wrong = wrong_guesses(facts, column)[:3]
    if wrong:
        listed = ", ".join(f"{plain(guess)} ({count})" for guess, count in wrong)
        said.append(f"Wrong most often: {listed}.")
    names = stuck(facts, column, datetime.now(UTC).isoformat(), HERE_S)
    if names:
        said.append(f"No answer for a while: {', '.join(map(plain, names))}.")
    st.markdown(" ".join(said))


def _file(room: Room, made: ReportFormat, *, anonymous: bool) -> bytes:
    """Return a file of what is known when it is asked for, and not when the button was drawn."""
    facts = known.facts_now(room)
    return made.write(facts, names_of(facts, anonymous=anonymous))


def show_leader(room: Room, address: str) -> None:
    """Show a room to its leader.

    Args:
        room: the room.
        address: of it, as visitors reach it.
    """
    code, way = st.columns([3, 1], vertical_alignment="center")
    with code:
        st.markdown(f"# {spoken(room.code)}")
        st.markdown(f"{_when(room)}  \n<{address}>")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.link_button("Open the wall", f"{address}&view=wall", icon=":material/desktop_windows:")
            shown = st.toggle("Names on the wall", room.names_shown, key=f"rooms.names.{room.code}")
            if shown != room.names_shown:
                _do(lambda: store().show_names(owner(), room, shown=shown))
    way.image(qr_code(address), width="stretch", caption="Scan to join")
    redrawn(_draw, 1.0)(room)
    if room.state is RoomState.OPEN:
        with st.expander("Set a task", icon=":material/flag:", expanded=not known.tasks_of(room)):
            _offer_next(room)
        with st.expander("Send a message", icon=":material/campaign:"):
            with st.form("rooms.say", border=False):
                message = st.text_input(
                    "Message on all pages",
                    room.message,
                    max_chars=LONGEST_MESSAGE,
                    placeholder="Guess first: which size fills the GPU?",
                )
                page = st.text_input(
                    "Link to a page (optional)",
                    room.link,
                    placeholder="lessons?lesson=dtypes",
                    help="The address of any page of this app, as your browser shows it: a lesson, a form, a run",
                )
                pressed = st.form_submit_button("Show to all", type="primary", icon=":material/campaign:")
            if pressed:
                # Not the page of rooms: a room's own address could contain the leader's key.
                pages = [name for name in PARAMETERS if name != "rooms"]
                _do(
                    lambda: store().announce(
                        owner(), room, message=read_message(message), link=read_link(page, pages, FIRST_PAGE)
                    )
                )
    with st.expander("Results as a file", icon=":material/download:"):
        anonymous = st.toggle("Without names", help="Participants are numbered in random order")
        with st.container(horizontal=True):
            for suffix, made in FORMATS.items():
                st.download_button(
                    made.title,
                    partial(_file, room, made, anonymous=anonymous),
                    f"room-{room.code}{suffix}",
                    made.mime,
                    icon=":material/download:",
                    on_click="ignore",
                )
    with st.expander("People", icon=":material/manage_accounts:"):
        _offer_renaming(room)
    with st.expander("This room", icon=":material/settings:"):
        _offer_link(room, address)
        with st.container(horizontal=True):
            if room.state is RoomState.OPEN and st.button("Close", icon=":material/door_front:"):
                _do(lambda: store().close_room(owner(), room))
            sure = st.checkbox("Delete all data of this room")
            if st.button("Delete", icon=":material/delete:", disabled=not sure):
                store().delete_room(owner(), room)
                known.forget()
                known.leave_deleted(room)


def _draw(room: Room) -> None:
    try:
        note_visit()
        now = known.as_it_is_now(room)
        facts = known.facts_of(room)
        tasks = known.tasks_of(room)
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)
        return
    if now is None:
        known.leave_deleted(room)
    if now.state is not room.state:
        st.rerun()
    if tasks and (column := next((each for each in facts.columns if each.task.number == tasks[-1].number), None)):
        _show_task(now, column, tasks[-1])
    _show_progress(facts)


def _when(room: Room) -> str:
    if room.state is RoomState.OPEN:
        return f"Open until {room.ends_utc[:16].replace('T', ' ')} UTC. Anyone with the code can join."
    return f"This room is {room.state}: it can be read, but not joined."


def _offer_renaming(room: Room) -> None:
    people = {each.number: each.name for each in known.people_in(room)}
    if not people:
        st.markdown("No participants yet.")
        return
    number = st.selectbox("Participant", people, format_func=lambda each: people.get(each, ""))
    name = st.text_input("New name", max_chars=LONGEST_NAME, key=f"rooms.rename.{number}")
    with st.container(horizontal=True):
        if st.button("Rename", icon=":material/edit:", disabled=not name):
            _do(lambda: store().rename_participant(owner(), room, number, name=read_name(name)))
        if st.button("Remove", icon=":material/person_remove:", help="They cannot join again from that browser"):
            _do(lambda: store().remove_participant(owner(), room, number))


def _offer_link(room: Room, address: str) -> None:
    """Offer the leader's link, by which a second device leads too."""
    key = st.session_state.get(KEYS, {}).get(room.code)
    if key is None:
        st.markdown("A leader's link lets a second device lead. A new link replaces the previous one.")
        if st.button("Make a leader's link", icon=":material/key:"):
            st.session_state.setdefault(KEYS, {})[room.code] = store().new_leader_key(owner(), room)
            st.rerun()
        return
    st.markdown("Leader's link, for a second device. Anyone with this link can lead: do not show it on the projector.")
    st.code(f"{address}&lead={key}", language=None, wrap_lines=True)


# What the leader of a room asks for: a lesson step by step, or a goal, and what is open, shown and timed of it.


def _show_task(room: Room, column: Column, task: RoomTask) -> None:
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
            for minutes in (1, 5):
                if st.button(
                    f"Give {minutes} min", icon=":material/timer:", help="From now on", key=f"rooms.time.{minutes}"
                ):
                    _do(partial(_time, room, task, minutes * 60.0))
            if task.left_s is not None and st.button("No timer", icon=":material/timer_off:"):
                _do(lambda: _time(room, task, None))
        if column.lesson and column.step:
            _offer_steps(room, column, task)


def _offer_marks(room: Room, task: RoomTask) -> None:
    number = task.number
    if task.revealed:
        if st.button("Take back", icon=":material/visibility_off:", help="The wall shows only guesses again"):
            _do(lambda: store().mark_task(owner(), room, number, marks={"revealed": False, "frozen": False}))
    elif st.button(
        "Reveal",
        icon=":material/visibility:",
        type="primary",
        help="The wall shows measured results, and answers are closed",
    ):
        _do(lambda: store().mark_task(owner(), room, number, marks={"revealed": True, "frozen": True}))
    if not task.revealed:
        frozen = task.frozen_utc is not None
        label = "Open answers" if frozen else "Freeze"
        if st.button(label, icon=":material/ac_unit:", help="Open or close answers to this task"):
            _do(lambda: store().mark_task(owner(), room, number, marks={"frozen": not frozen}))
    label = "Show on the wall" if task.hidden else "Hide on the wall"
    if st.button(label, icon=":material/desktop_windows:"):
        _do(lambda: store().mark_task(owner(), room, number, marks={"hidden": not task.hidden}))


def _time(room: Room, task: RoomTask, left_s: float | None) -> None:
    store().time_task(owner(), room, task.number, left_s=left_s)


def _offer_steps(room: Room, column: Column, task: RoomTask) -> None:
    """Offer the next step of the lesson, and to let go."""
    lesson = column.lesson
    step = column.step
    if lesson is None or step is None or task.settings.get("step") == ALL_STEPS:
        return
    step_number = lesson.steps.index(step) + 1
    with st.container(horizontal=True):
        if step_number < len(lesson.steps):
            following = lesson.steps[step_number]
            if st.button(
                f"Open step {following.letter}: {plain(following.title)}",
                icon=":material/arrow_forward:",
                type="primary",
            ):
                _give(room, LESSON, {"lesson": lesson.name, "step": following.letter})
        if st.button("Open all steps", icon=":material/lock_open:", help="Participants proceed at their own pace"):
            _give(room, LESSON, {"lesson": lesson.name, "step": ALL_STEPS})


def _offer_next(room: Room) -> None:
    """Offer what a room can be asked for next."""
    titles = {LESSON: "Follow a lesson together"} | {kind.name: kind.title for kind in KINDS.values()}
    kind = st.selectbox("What", titles, format_func=lambda name: titles[name], key="rooms.kind")
    with st.form(f"rooms.give.{kind}", border=False):
        if kind == LESSON:
            lessons = catalog().lessons
            name = st.selectbox("Lesson", lessons, format_func=lambda name: lessons[name].title)
            pressed = st.form_submit_button("Open its first step", icon=":material/school:", type="primary")
            if pressed and name:
                _give(room, LESSON, {"lesson": name, "step": lessons[name].steps[0].letter})
            return
        settings = _settings(KINDS[kind])
        pressed = st.form_submit_button("Set this task", icon=":material/flag:", type="primary")
    if pressed:
        try:
            goal = goal_of(kind, settings)
        except InvalidInput as error:
            show_problem(error)
            return
        _give(room, kind, goal.settings)


def _settings(kind: GoalKind) -> dict[str, str]:
    """Draw a field for each setting of a kind of goals."""
    columns = st.columns(len(kind.settings))
    return {setting.name: _field(kind, setting, column) for setting, column in zip(kind.settings, columns, strict=True)}


def _field(kind: GoalKind, setting: Setting, column: "st.delta_generator.DeltaGenerator") -> str:
    key = f"rooms.give.{kind.name}.{setting.name}"
    if setting.choices:
        default = setting.choices.index(setting.default)
        return str(column.selectbox(setting.title, setting.choices, index=default, key=key))
    return str(column.text_input(setting.title, setting.default, max_chars=40, key=key))


def _give(room: Room, kind: str, settings: Mapping[str, str]) -> None:
    _do(lambda: store().add_task(owner(), room, kind=kind, settings=settings))


def _do(change: Callable[[], object]) -> None:
    """Do what a leader asks for, and show it, or say why not."""
    try:
        change()
    except GpuExploreError as error:
        show_problem(error)
        return
    known.forget()
    st.rerun()
