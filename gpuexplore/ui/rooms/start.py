"""The ways into a room: by its code, by opening one, and those that one has."""

import streamlit as st

from gpuexplore.errors import GpuExploreError
from gpuexplore.rooms import LONGEST_TITLE, Room, RoomState, read_hours, read_title, spoken
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.rooms import found
from gpuexplore.ui.rooms.inside import GONE
from gpuexplore.ui.rooms.leader import KEYS
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import show_problem

MOST_LISTED = 20
DEFAULT_HOURS = "4"


def show_start() -> None:
    """Offer to join a room and to open one, and list those that the visitor leads or is in."""
    if (code := st.session_state.pop(GONE, None)) is not None:
        st.info(f"Room {code} was deleted, with everything in it.", icon=":material/delete:")
    join, lead = st.columns(2, gap="large")
    with join:
        _offer_joining()
    with lead:
        _offer_opening()
    _list_mine()


def _offer_joining() -> None:
    st.subheader("Join", anchor=False)
    with st.form("rooms.join", border=True):
        typed = st.text_input(
            "Code", placeholder="KTR MWX", help="Six letters, from whoever leads the room", max_chars=20
        )
        pressed = st.form_submit_button("Join", type="primary", icon=":material/login:")
    if not pressed:
        return
    try:
        room = found.room_with(typed)
    except GpuExploreError as error:
        show_problem(error)
    else:
        _go(room)


def _offer_opening() -> None:
    st.subheader("Lead", anchor=False)
    with st.form("rooms.open", border=True):
        title = st.text_input("Title", placeholder="GPU course, Monday", max_chars=LONGEST_TITLE)
        hours = st.text_input("Open for, hours", DEFAULT_HOURS, help="It ends by itself then, and can still be read")
        pressed = st.form_submit_button("Open a room", icon=":material/add:")
    if not pressed:
        return
    try:
        room, key = store().open_room(owner(), read_title(title), read_hours(hours))
    except GpuExploreError as error:
        show_problem(error)
        return
    st.session_state.setdefault(KEYS, {})[room.code] = key
    found.forget()
    _go(room)


def _list_mine() -> None:
    rooms = store().rooms_of(owner())
    if not rooms:
        return
    st.subheader("Your rooms", anchor=False)
    for room in rooms[:MOST_LISTED]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                spoken(room.code),
                key=f"rooms.open.{room.code}",
                icon=":material/meeting_room:",
                on_click=_go,
                args=(room,),
            )
            st.markdown(f"{plain(room.title) or 'no title'} · {_when(room)}")


def _when(room: Room) -> str:
    if room.state is RoomState.OPEN:
        return f"open until {room.ends_utc[:16].replace('T', ' ')} UTC"
    return str(room.state)


def _go(room: Room) -> None:
    link.write("room", room.code)
    st.rerun()
