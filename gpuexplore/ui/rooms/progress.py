"""Who is how far, for the leader of a room: everybody's state, wrong guesses, who is stuck, and all of it as a file."""

from datetime import UTC, datetime
from functools import partial

import streamlit as st

from gpuexplore.room_report.export import FORMATS, Format
from gpuexplore.room_report.facts import Column, RoomFacts
from gpuexplore.room_report.standings import State, stuck, wrong_guesses
from gpuexplore.rooms import Room
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.rooms import known
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.units import format_whole_seconds

HERE_S = 30.0  # heard of within so long: pages say that they are there every ten
MOST_COLUMNS = 8  # the newest things a room did
MOST_WRONG = 3


def show_progress(facts: RoomFacts) -> None:
    """Show who is in a room and how far each is with what it was asked for."""
    people = facts.people
    here = sum(each.seen_s < HERE_S for each in people)
    st.subheader(f"{len(people)} joined, {here} here", anchor=False)
    if not people:
        st.markdown("Nobody has joined yet: show the code, or the QR code.")
        return
    columns = facts.columns[-MOST_COLUMNS:]
    if columns:
        _show_current(facts, columns[-1])
    states = {column.key: known.standings_of(facts, column) for column in columns}
    rows = []
    for each in people:
        row: dict[str, object] = {"Name": each.name, "Joined (UTC)": each.joined_utc[11:16], "Here": _seen(each.seen_s)}
        for place, column in enumerate(columns, start=len(facts.columns) - len(columns) + 1):
            standing = states[column.key].get(each.number)
            row[f"{place}. {column.title}"] = "" if standing is None else _said(standing.state, standing.outcome)
        rows.append(row)
    table_of(rows, {}).show(alt=f"Table of {len(people)} participants, with how far each is")


def _show_current(facts: RoomFacts, column: Column) -> None:
    done = sum(standing.state is State.DONE for standing in known.standings_of(facts, column).values())
    said = [f"**{done} of {len(facts.people)} done** with the last one."]
    wrong = wrong_guesses(facts, column)[:MOST_WRONG]
    if wrong:
        listed = ", ".join(f"{plain(guess)} ({count})" for guess, count in wrong)
        said.append(f"Wrong most often: {listed}.")
    names = stuck(facts, column, datetime.now(UTC).isoformat(), HERE_S)
    if names:
        said.append(f"No answer for a while: {', '.join(map(plain, names))}.")
    st.markdown(" ".join(said))


def _said(state: State, outcome: str) -> str:
    return outcome or state.value


def _seen(seen_s: float) -> str:
    return "yes" if seen_s < HERE_S else f"away for {format_whole_seconds(seen_s)}"


def offer_export(room: Room) -> None:
    """Offer everything that was answered and measured in a room as a file."""
    anonymous = st.toggle("Without names", help="People are numbered in an order of no meaning")
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


def _file(room: Room, made: Format, *, anonymous: bool) -> bytes:
    """Return a file of what is known when it is asked for, and not when the button was drawn."""
    return made.write(known.facts_now(room), anonymous=anonymous)
