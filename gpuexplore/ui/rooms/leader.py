"""A room for its leader: the code to come in by, who is here, what everybody is told, and the end of it."""

from collections.abc import Callable

import streamlit as st

from gpuexplore.errors import GpuExploreError, StoreUnavailable
from gpuexplore.rooms import (
    LONGEST_MESSAGE,
    LONGEST_NAME,
    Participant,
    Room,
    RoomState,
    read_link,
    read_message,
    read_name,
    spoken,
)
from gpuexplore.ui.link import PARAMETERS
from gpuexplore.ui.rooms import found
from gpuexplore.ui.rooms.inside import leave_deleted
from gpuexplore.ui.session import note_visit, owner, store
from gpuexplore.ui.shared.qr import qr_code
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import show_problem
from gpuexplore.units import format_whole_seconds

TICK_S = 1.0
HERE_S = 30.0  # heard of within so long: pages say that they are there every ten
KEYS = "rooms.keys"  # the session's key of the keys of leaders' links, by code: the database has digests alone
FIRST_PAGE = "benchmark"
PAGES = tuple(name for name in PARAMETERS if name != "rooms")  # a room's own address could hold the leader's key


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
    way.image(qr_code(address), width="stretch", caption="To join by a camera")
    if room.state is RoomState.OPEN:
        _say(room)
    st.fragment(_draw_people, run_every=TICK_S)(room)
    _offer_ends(room, address)


def _when(room: Room) -> str:
    if room.state is RoomState.OPEN:
        return f"Open until {room.ends_utc[:16].replace('T', ' ')} UTC. Whoever has the code can join."
    return f"This room is {room.state}: it can be read, and nobody joins any more."


def _say(room: Room) -> None:
    with st.form("rooms.say", border=True):
        message = st.text_input(
            "Message on everybody's page",
            room.message,
            max_chars=LONGEST_MESSAGE,
            placeholder="Guess first: which size fills the GPU?",
        )
        page = st.text_input(
            "Page that it is about",
            room.link,
            placeholder="lessons?lesson=dtypes",
            help="The address of any page of this app, as your browser shows it: a lesson, a form, a run",
        )
        pressed = st.form_submit_button("Show to everybody", type="primary", icon=":material/campaign:")
    if pressed:
        _do(
            lambda: store().announce(
                owner(), room, message=read_message(message), link=read_link(page, PAGES, FIRST_PAGE)
            )
        )


def _draw_people(room: Room) -> None:
    try:
        note_visit()
        now, people = found.as_it_is_now(room), found.people_in(room)
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)
        return
    if now is None:
        leave_deleted(room)
    if now.state is not room.state:
        st.rerun()
    here = sum(each.seen_s < HERE_S for each in people)
    st.subheader(f"{len(people)} joined, {here} here", anchor=False)
    if not people:
        st.markdown("Nobody has joined yet: show the code, or the QR code.")
        return
    rows = [{"Name": each.name, "Joined (UTC)": each.joined_utc[11:16], "Here": _seen(each)} for each in people]
    table_of(rows, {}).show(alt=f"Table of {len(people)} participants")


def _seen(person: Participant) -> str:
    return "yes" if person.seen_s < HERE_S else f"away for {format_whole_seconds(person.seen_s)}"


def _offer_ends(room: Room, address: str) -> None:
    with st.expander("People", icon=":material/manage_accounts:"):
        _offer_renaming(room)
    with st.expander("This room", icon=":material/settings:"):
        _offer_link(room, address)
        with st.container(horizontal=True):
            if room.state is RoomState.OPEN and st.button("Close", icon=":material/door_front:"):
                _do(lambda: store().close_room(owner(), room))
            sure = st.checkbox("With all that is in it")
            if st.button("Delete", icon=":material/delete:", disabled=not sure):
                store().delete_room(owner(), room)
                found.forget()
                leave_deleted(room)


def _offer_renaming(room: Room) -> None:
    people = {each.number: each.name for each in found.people_in(room)}
    if not people:
        st.markdown("Nobody has joined yet.")
        return
    number = st.selectbox("Participant", people, format_func=lambda each: people.get(each, ""))
    name = st.text_input("New name", max_chars=LONGEST_NAME, key=f"rooms.rename.{number}")
    with st.container(horizontal=True):
        if st.button("Rename", icon=":material/edit:", disabled=not name):
            _do(lambda: store().rename_participant(owner(), room, number, name=read_name(name)))
        if st.button("Remove", icon=":material/person_remove:", help="They cannot come in again from that browser"):
            _do(lambda: store().remove_participant(owner(), room, number))


def _offer_link(room: Room, address: str) -> None:
    """Offer the leader's link, by which a second device leads too."""
    key = st.session_state.get(KEYS, {}).get(room.code)
    if key is None:
        st.markdown("A leader's link lets a second device lead. Making one ends the one before.")
        if st.button("Make a leader's link", icon=":material/key:"):
            st.session_state.setdefault(KEYS, {})[room.code] = store().new_leader_key(owner(), room)
            st.rerun()
        return
    st.markdown("Leader's link, for a second device. Whoever has it leads: keep it off the projector.")
    st.code(f"{address}&lead={key}", language=None, wrap_lines=True)


def _do(change: Callable[[], object]) -> None:
    """Do what a leader asks for, and show it, or say why not."""
    try:
        change()
    except GpuExploreError as error:
        show_problem(error)
        return
    found.forget()
    st.rerun()
