"""The page Rooms: a room as its visitor may see it, else the forms that join or open one."""

import streamlit as st

from gpuexplore.core.errors import GpuExploreError, InvalidInput, NotFound
from gpuexplore.features.workshop.ui import found
from gpuexplore.features.workshop.ui.inside import GONE, show_inside, show_outside
from gpuexplore.features.workshop.ui.leader import KEYS, show_leader
from gpuexplore.features.workshop.ui.wall import show_wall
from gpuexplore.rooms import LONGEST_TITLE, Room, RoomState, read_hours, read_title, spoken
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.present import is_presented
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import show_problem

MOST_LISTED = 20
ROOM, LEAD = "room", "lead"


def _show_start() -> None:
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
        hours = st.text_input("Open for, hours", "4", help="It ends by itself then, and can still be read")
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


def show() -> None:
    """Show the room that the link names, or the ways into one."""
    text = link.parameters().get(ROOM)
    if text is None:
        _show_start()
        return
    try:
        room = found.room_with(text)
    except (InvalidInput, NotFound) as error:
        show_problem(error)
        _show_start()
        return
    _take_lead(room)
    if is_presented() and (found.leads(room) or _is_in(room)):
        show_wall(room, link.address({ROOM: room.code}))
        return
    st.header(plain(room.title or f"Room {spoken(room.code)}"), anchor=False)
    if found.leads(room):
        show_leader(room, link.address({ROOM: room.code}))
        return
    if not _is_in(room):
        show_outside(room, found.me_in(room))
    else:
        show_inside(room)


def _is_in(room: Room) -> bool:
    me = found.me_in(room)
    return me is not None and not me.removed


def _take_lead(room: Room) -> None:
    """Let a visitor by the leader's link lead; the key leaves the URL, which is shown on projectors."""
    key = link.parameters().get(LEAD)
    if key is None:
        return
    link.write(LEAD, None)
    if store().take_lead(owner(), room, key):
        found.forget()
    else:
        show_problem(InvalidInput("this leader's link opens nothing: its room has a newer one, or it was cut off"))
