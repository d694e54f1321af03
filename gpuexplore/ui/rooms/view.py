"""A room on a page, as whoever looks at it may see it; without one, the ways into one."""

import streamlit as st

from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.rooms import Room, spoken
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.present.view import is_presented
from gpuexplore.ui.rooms import found
from gpuexplore.ui.rooms.inside import show_inside, show_outside
from gpuexplore.ui.rooms.leader import show_leader
from gpuexplore.ui.rooms.start import show_start
from gpuexplore.ui.rooms.wall import show_wall
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import show_problem

ROOM, LEAD = "room", "lead"


def show() -> None:
    """Show the room that the link names, or the ways into one."""
    text = link.parameters().get(ROOM)
    if text is None:
        show_start()
        return
    try:
        room = found.room_with(text)
    except (InvalidInput, NotFound) as error:
        show_problem(error)
        show_start()
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
    """Let whoever comes by the leader's link lead; the key leaves the URL, which is shown on projectors."""
    key = link.parameters().get(LEAD)
    if key is None:
        return
    link.write(LEAD, None)
    if store().take_lead(owner(), room, key):
        found.forget()
    else:
        show_problem(InvalidInput("this leader's link opens nothing: its room has a newer one, or it was cut off"))
