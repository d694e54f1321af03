"""Everything a room has come to, read once for all who look at it: what is new is added to what was known."""

from collections.abc import Callable, Mapping
from threading import Lock

from gpuexplore.features.workshop.report.facts import Column, RoomFacts, RoomRun, runs_of
from gpuexplore.features.workshop.report.standings import Standing, standings
from gpuexplore.features.workshop.ui import found
from gpuexplore.rooms import Room, RoomTask
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import Shared, moment

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
STANDINGS: Shared[Mapping[int, Standing]] = Shared(500)


def facts_of(room: Room) -> RoomFacts:
    """Return everything that is known of a room, as it was at most a third of a second ago: the wall is to be fast."""
    return FACTS.get((room.number, moment()), lambda: facts_now(room))


def facts_now(room: Room) -> RoomFacts:
    """Return everything that is known of a room now."""
    return RoomFacts(
        room,
        found.people_in(room),
        tasks_of(room),
        store().guesses_of_room(room),
        store().answers_of_room(room),
        READERS.get(room.number, _reading_runs)(room),
    )


def standings_of(facts: RoomFacts, column: Column) -> Mapping[int, Standing]:
    """Return all participants' progress with one thing, worked out once for all who look at the same facts."""
    return STANDINGS.get((facts.key, column.key), lambda: standings(facts, column))


def tasks_of(room: Room) -> tuple[RoomTask, ...]:
    """Return what a room was asked to do, the oldest first."""
    return TASKS.get((room.number, moment(found.LOOKS)), lambda: store().tasks_of_room(room))


def forget() -> None:
    """Forget what was known: the visitor has changed something, and wants to see it."""
    for known in (FACTS, TASKS):
        known.forget()
    found.forget()
