"""The page Rooms: a room as its visitor may see it, else the forms that join or open one."""

import streamlit as st

from gpuexplore.core.errors import GpuExploreError, InvalidInput, NotFound, StoreUnavailable
from gpuexplore.features.workshop.ui import known
from gpuexplore.features.workshop.ui.leader import KEYS, show_leader
from gpuexplore.features.workshop.ui.task import show_task
from gpuexplore.features.workshop.ui.wall import show_wall
from gpuexplore.rooms import (
    LONGEST_NAME,
    LONGEST_TITLE,
    Participant,
    Room,
    RoomState,
    read_code,
    read_hours,
    read_name,
    read_title,
    spoken,
)
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.present import is_presented
from gpuexplore.ui.session import note_visit, owner, store
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.url_widgets import show_problem

ROOM = "room"
SHOWN = "rooms.shown"  # the session's key of the room that its page showed last


def _show_start() -> None:
    """Offer to join a room and to open one, and list those that the visitor leads or is in."""
    if (code := st.session_state.pop(known.GONE, None)) is not None:
        st.info(f"Room {code} was deleted, with everything in it.", icon=":material/delete:")
    join, lead = st.columns(2, gap="large")
    with join:
        _offer_joining()
    with lead:
        _offer_opening()
    _list_mine()


def _offer_joining() -> None:
    st.subheader("Join", anchor=False)
    st.caption("Follow a room's leader: guess, measure, and compare with the room.")
    with st.form("rooms.join", border=True):
        typed = st.text_input("Code", placeholder="KTR MWX", help="Six letters, from the room's leader", max_chars=20)
        pressed = st.form_submit_button("Join", type="primary", icon=":material/login:")
    if not pressed:
        return
    try:
        room = known.room_with(typed)
    except GpuExploreError as error:
        show_problem(error)
    else:
        _go(room)


def _offer_opening() -> None:
    st.subheader("Lead", anchor=False)
    st.caption("Get a code and a QR code, set tasks, see who is done, and show results on a projector.")
    with st.form("rooms.open", border=True):
        title = st.text_input("Title", placeholder="GPU course, Monday", max_chars=LONGEST_TITLE)
        hours = st.text_input("Open for, hours", "4", help="The room then closes, but can still be read")
        pressed = st.form_submit_button("Open a room", icon=":material/add:")
    if not pressed:
        return
    try:
        room, key = store().open_room(owner(), read_title(title), read_hours(hours))
    except GpuExploreError as error:
        show_problem(error)
        return
    st.session_state.setdefault(KEYS, {})[room.code] = key
    known.forget()
    _go(room)


def _list_mine() -> None:
    rooms = store().rooms_of(owner())
    if not rooms:
        return
    st.subheader("Your rooms", anchor=False)
    for room in rooms[:20]:
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
        room = known.room_with(text)
    except (InvalidInput, NotFound) as error:
        if isinstance(error, NotFound) and (shown := st.session_state.get(SHOWN)) and shown.code == read_code(text):
            known.leave_deleted(shown)
        show_problem(error)
        _show_start()
        return
    st.session_state[SHOWN] = room
    _take_lead(room)
    if is_presented() and (known.leads(room) or _is_in(room)):
        show_wall(room, link.address({ROOM: room.code}))
        return
    st.header(plain(room.title or f"Room {spoken(room.code)}"), anchor=False)
    if known.leads(room):
        show_leader(room, link.address({ROOM: room.code}))
        return
    if not _is_in(room):
        _show_outside(room, known.me_in(room))
    else:
        _show_inside(room)


def _is_in(room: Room) -> bool:
    me = known.me_in(room)
    return me is not None and not me.removed


def _take_lead(room: Room) -> None:
    """Let a visitor by the leader's link lead; the key leaves the URL, which is shown on projectors."""
    key = link.parameters().get("lead")
    if key is None:
        return
    link.write("lead", None)
    if store().take_lead(owner(), room, key):
        known.forget()
    else:
        show_problem(InvalidInput("this leader's link is invalid: it was replaced by a newer one, or is incomplete"))


def _show_outside(room: Room, me: Participant | None) -> None:
    """Show the door of a room to a visitor who is not in it."""
    if me is not None:
        show_problem(InvalidInput("the leader of this room has removed you"))
        return
    if room.state is not RoomState.OPEN:
        show_problem(InvalidInput(f"room {spoken(room.code)} is {room.state}: it can no longer be joined"))
        return
    name = _asked_for_name("Join", "")
    if name is not None:
        _enter(room, name)


def _show_inside(room: Room) -> None:
    """Show a room to a participant; it redraws itself."""
    # 25 pages redraw each second: of more, each does more rarely.
    redrawn(_draw, max(1.0, len(known.people_in(room)) / 25))(room)
    with st.expander("Your name", icon=":material/badge:"):
        me = known.me_in(room)
        name = _asked_for_name("Rename", me.name if me else "")
        if name is not None:
            _enter(room, name)
        st.button("Leave this room", icon=":material/logout:", on_click=_leave, args=(room,))


def _draw(room: Room) -> None:
    try:
        note_visit()
        now = known.as_it_is_now(room)
        me = known.me_in(room)
        if me is not None:
            known.note_presence(me.number)
        count = len(known.people_in(room))
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)
        return
    if now is None:
        known.leave_deleted(room)
    if me is None or me.removed or now.state is not room.state:
        st.rerun()
    st.markdown(f"You are **{plain(me.name)}**. {count} {'person is' if count == 1 else 'people are'} in this room.")
    over = {
        RoomState.CLOSED: "The leader has closed this room. It can still be read.",
        RoomState.ENDED: "This room has ended. It can still be read.",
    }
    if now.state in over:
        st.info(over[now.state], icon=":material/door_front:")
    _show_message(now)
    show_task(now, me)


def _show_message(room: Room) -> None:
    """Show what the leader says, and the page it is about."""
    if not (room.message or room.link):
        if not known.tasks_of(room):
            st.markdown(":gray[Messages and tasks of the leader appear here.]")
        return
    with st.container(border=True):
        if room.message:
            st.markdown(f"### {plain(room.message)}")
        if room.link:
            st.link_button("Open", link.href(room.link), icon=":material/open_in_new:", type="primary")


def _asked_for_name(label: str, default: str) -> str | None:
    """Draw a form for a name; return the name when the button was pressed with one that can be used."""
    with st.form(f"rooms.name.{label}", border=False):
        typed = st.text_input("Your name", default, max_chars=LONGEST_NAME, help="Visible to everyone in the room")
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
    known.forget()
    st.rerun()


def _leave(room: Room) -> None:
    store().leave_room(owner(), room)
    known.forget()
