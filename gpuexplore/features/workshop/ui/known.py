"""Everything a room has come to, read once for all who look at it: what is new is added to what was known."""

from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic
from typing import NoReturn

import streamlit as st

from gpuexplore.core.errors import NotFound
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.ui.step import settled
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, RoomRun, Standing, runs_of, standings
from gpuexplore.rooms import HERE, WRONG_CODES, Participant, Room, RoomTask, read_code, spoken
from gpuexplore.store.entries import Answer
from gpuexplore.ui import link
from gpuexplore.ui.identity import address
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import Shared, moment

GONE = "rooms.gone"  # the session's key of the code of a room that was deleted while it was looked at
LOOKS = 3  # a second: a message is on all pages in two
SEEN_EVERY_S = 10.0  # who is here is written down together
ROOMS: Shared[Room | None] = Shared(200)
PEOPLE: Shared[tuple[Participant, ...]] = Shared(200)
MINE: Shared[Participant | None] = Shared(2000)
LED: Shared[bool] = Shared(2000)


def room_with(text: str) -> Room:
    """Return the room whose code a link or a field gives.

    Raises:
        InvalidInput: it is no code, or too many wrong ones were tried from there, by a visitor who is not in the room.
        NotFound: no room has it.
    """
    code = read_code(text)
    whence = address() or HERE
    room = _looked_up(code)
    if room is not None and (me_in(room) is not None or leads(room)):
        WRONG_CODES.note_entered(whence, code)
        return room
    WRONG_CODES.check(whence, code)
    if room is None:
        WRONG_CODES.note(whence)
        raise NotFound(f"no room has the code {spoken(code)}: it may be mistyped, or the room was deleted")
    return room


def as_it_is_now(room: Room) -> Room | None:
    """Return a room that was found before, as it is now; None where it was deleted, which counts as no wrong code."""
    return _looked_up(room.code)


def _looked_up(code: str) -> Room | None:
    return ROOMS.get((code, moment(LOOKS)), lambda: store().room_of(code))


def people_in(room: Room) -> tuple[Participant, ...]:
    """Return who is in a room; for its leader and for those in it."""
    return PEOPLE.get((room.number, moment(LOOKS)), lambda: store().participants(room))


def me_in(room: Room) -> Participant | None:
    """Return who the visitor is in a room; None for who is not in it."""
    name = owner()
    return MINE.get((name, room.number, moment(LOOKS)), lambda: store().participant_of(name, room))


def leads(room: Room) -> bool:
    """Return whether the visitor leads a room."""
    name = owner()
    return LED.get((name, room.number, moment(LOOKS)), lambda: store().leads(name, room))


def forget() -> None:
    """Forget what was known: the visitor has changed something, and wants to see it."""
    for known in (ROOMS, PEOPLE, MINE, LED, FACTS, TASKS):
        known.forget()


def _noting_presence() -> Callable[[int], None]:
    """Return what notes that the participant with a number is here: written down by whichever page comes first."""
    lock = Lock()
    seen = set[int]()
    due_s = 0.0

    def note(number: int) -> None:
        nonlocal due_s
        with lock:
            seen.add(number)
            if monotonic() < due_s:
                return
            due_s = monotonic() + SEEN_EVERY_S
            written = set(seen)
            seen.clear()
        store().see_participants(written)

    return note


note_presence = _noting_presence()


MOST_ROOMS = 50


ReadRuns = Callable[[Room], tuple[RoomRun, ...]]


def _reading_runs() -> ReadRuns:
    """Return what reads the runs of one room, as they were asked for; several threads may call it."""
    lock = Lock()
    known = dict[str, RoomRun]()

    def read(room: Room) -> tuple[RoomRun, ...]:
        nonlocal known
        with lock:
            known = runs_of(store().runs_of_room(room), store().results_of_runs, known)
            return tuple(known.values())

    return read


READERS: Shared[ReadRuns] = Shared(MOST_ROOMS)
FACTS: Shared[RoomFacts] = Shared(MOST_ROOMS)
TASKS: Shared[tuple[RoomTask, ...]] = Shared(MOST_ROOMS)
ANSWERS: Shared[Answer] = Shared(500)  # a measuring room's are judged once a second
STANDINGS: Shared[Mapping[int, Standing]] = Shared(500)


def facts_of(room: Room) -> RoomFacts:
    """Return everything that is known of a room, as it was at most a third of a second ago: the wall is to be fast."""
    return FACTS.get((room.number, moment()), lambda: facts_now(room))


def facts_now(room: Room) -> RoomFacts:
    """Return everything that is known of a room now."""
    return RoomFacts(
        room,
        people_in(room),
        tasks_of(room),
        store().guesses_of_room(room),
        tuple((number, _settled(answer)) for number, answer in store().answers_of_room(room)),
        READERS.get(room.number, _reading_runs)(room),
    )


def _settled(answer: Answer) -> Answer:
    """Return an answer with its outcomes once its measurements have ended, wherever its learner is by then."""
    lesson = catalog().lessons.get(answer.lesson)
    if answer.outcomes is not None or lesson is None or lesson.digest != answer.digest:
        return answer
    return ANSWERS.get((answer.number, moment(LOOKS)), lambda: settled(lesson.step(answer.step), answer))


def standings_of(facts: RoomFacts, column: Column) -> Mapping[int, Standing]:
    """Return all participants' progress with one thing, worked out once for all who look at the same facts."""
    return STANDINGS.get((facts.key, column.key), lambda: standings(facts, column))


def tasks_of(room: Room) -> tuple[RoomTask, ...]:
    """Return what a room was asked to do, the oldest first."""
    return TASKS.get((room.number, moment(LOOKS)), lambda: store().tasks_of_room(room))


def leave_deleted(room: Room) -> NoReturn:
    """Go back to the ways into a room, and say there that this one was deleted."""
    st.session_state[GONE] = spoken(room.code)
    link.write("room", None)
    st.rerun()
