"""A room for those in it: what its leader says, and who is here; and its door."""

from typing import NoReturn

import streamlit as st

from gpuexplore.core.errors import GpuExploreError, InvalidInput, StoreUnavailable
from gpuexplore.features.workshop.ui import found, known
from gpuexplore.features.workshop.ui.task import show_task
from gpuexplore.rooms import LONGEST_NAME, Participant, Room, RoomState, read_name, spoken
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import note_visit, owner, store
from gpuexplore.ui.url_widgets import show_problem

TICK_S = 1.0
AT_ONCE = 25  # people whose pages redraw each second: of more, each does more rarely
GONE = "rooms.gone"  # the session's key of the code of a room that was deleted while it was looked at
OVER = {
    RoomState.CLOSED: "Its leader has closed this room. What is here can still be read.",
    RoomState.ENDED: "The time of this room is over. What is here can still be read.",
}


def show_outside(room: Room, me: Participant | None) -> None:
    """Show the door of a room to a visitor who is not in it."""
    if me is not None:
        show_problem(InvalidInput("the leader of this room has removed you"))
        return
    if room.state is not RoomState.OPEN:
        show_problem(InvalidInput(f"room {spoken(room.code)} is {room.state}: it cannot be joined any more"))
        return
    name = _asked_for_name("Join", "")
    if name is not None:
        _enter(room, name)


def show_inside(room: Room) -> None:
    """Show a room to a participant; it redraws itself."""
    st.fragment(_draw, run_every=max(TICK_S, TICK_S * len(found.people_in(room)) / AT_ONCE))(room)
    with st.expander("Your name", icon=":material/badge:"):
        me = found.me_in(room)
        name = _asked_for_name("Rename", me.name if me else "")
        if name is not None:
            _enter(room, name)
        st.button("Leave this room", icon=":material/logout:", on_click=_leave, args=(room,))


def _draw(room: Room) -> None:
    try:
        note_visit()
        now, me = found.as_it_is_now(room), found.me_in(room)
        if me is not None:
            found.note_presence(me.number)
        count = len(found.people_in(room))
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)
        return
    if now is None:
        leave_deleted(room)
    if me is None or me.removed or now.state is not room.state:
        st.rerun()
    st.markdown(f"You are **{plain(me.name)}**. {count} {'person is' if count == 1 else 'people are'} in this room.")
    if now.state in OVER:
        st.info(OVER[now.state], icon=":material/door_front:")
    _show_message(now)
    show_task(now, me)


def leave_deleted(room: Room) -> NoReturn:
    """Go back to the ways into a room, and say there that this one was deleted."""
    st.session_state[GONE] = spoken(room.code)
    link.write("room", None)
    st.rerun()


def _show_message(room: Room) -> None:
    """Show what the leader says, and the page it is about."""
    if not (room.message or room.link):
        if not known.tasks_of(room):
            st.markdown(":gray[What the leader says appears here, by itself.]")
        return
    with st.container(border=True):
        if room.message:
            st.markdown(f"### {plain(room.message)}")
        if room.link:
            st.link_button("Open", link.href(room.link), icon=":material/open_in_new:", type="primary")


def _asked_for_name(label: str, default: str) -> str | None:
    """Draw a form for a name; return the name when the button was pressed with one that can be used."""
    with st.form(f"rooms.name.{label}", border=False):
        typed = st.text_input("Your name", default, max_chars=LONGEST_NAME, help="Everybody in the room may see it")
        if not st.form_submit_button(label, type="primary", icon=":material/login:"):
            return None
    try:
        return read_name(typed)
    except InvalidInput as error:
        show_problem(error)
        return None


def _enter(room: Room, name: str) -> None:
    try:
        store().join_room(owner(), room, name)
    except GpuExploreError as error:
        show_problem(error)
        return
    found.forget()
    st.rerun()


def _leave(room: Room) -> None:
    store().leave_room(owner(), room)
    found.forget()
