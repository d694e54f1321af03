"""Tasks of rooms and their outcomes: guesses, answers to lessons, and results of the participants.

Results are measured by runs of this server, or elsewhere, and sent to the room by a user with a secret.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, and_, func, insert, or_, select, update

from gpuexplore.core import InvalidInput, NotFound, Result
from gpuexplore.rooms import Room, RoomGuess, RoomTask
from gpuexplore.store.database import epoch_s, insertion, seconds_since_1970
from gpuexplore.store.entries import Answer, answer_from
from gpuexplore.store.rooms import Rooms, check_open, room_from, theirs
from gpuexplore.store.run_states import LISTED
from gpuexplore.store.tables import (
    ANSWERS,
    PARTICIPANTS,
    RESULTS,
    ROOM_GUESSES,
    ROOM_LEADERS,
    ROOM_TASKS,
    ROOMS,
    RUN_ASKERS,
    RUNS,
)
from gpuexplore.store.tolerant_decode import decodable, shared_environments

PREFIX = "sent:"  # no cookie has a colon, and accounts begin otherwise: who sends is no visitor of the pages

MOST_TASKS = 100  # of one room
MOST_ANSWERS = 20_000  # of one room
Mark = Literal["revealed", "frozen", "hidden"]


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A run that a participant of a room asked for.

    Attributes:
        run_id: its id.
        origin: where it was measured, when not on this server.
        asked: who in the room asked for it and when, the first one first; None stands for a leader.
        results: how many final ones there are.
    """

    run_id: str
    origin: str | None
    asked: tuple[tuple[int | None, str], ...]
    results: int


class RoomTasks(Rooms):
    """Tasks of rooms, and what came of them."""

    def add_task(self, owner: str, room: Room, *, kind: str, settings: Mapping[str, str]) -> int:
        """Give a room something to do, as its leader; return the number of the task.

        Args:
            owner: who leads the room.
            room: an open one.
            kind: `gpuexplore.rooms.LESSON` or a kind of goal.
            settings: of the kind.

        Raises:
            InvalidInput: another visitor leads the room, it is not open, or it had too many tasks.
        """
        with self.leading(owner, room) as connection:
            check_open(connection, room, self.now())
            count = select(func.count()).select_from(ROOM_TASKS).where(ROOM_TASKS.c.room == room.number)
            if (connection.scalar(count) or 0) >= MOST_TASKS:
                raise InvalidInput(f"this room has had the maximum of {MOST_TASKS} tasks: open a new room")
            row = {"room": room.number, "kind": kind, "settings": dict(settings), "created_utc": self.now()}
            made = connection.execute(insert(ROOM_TASKS).values(**row).returning(ROOM_TASKS.c.number))
            return int(made.scalar_one())

    def mark_task(self, owner: str, room: Room, number: int, *, marks: Mapping[Mark, bool]) -> None:
        """Reveal, freeze or hide a task, or take that back, as the leader of its room.

        Raises:
            InvalidInput: another visitor leads the room.
        """
        changes: dict[str, Any] = {name: on for name, on in marks.items() if name != "frozen"}
        if "frozen" in marks:
            changes["frozen_utc"] = self.now() if marks["frozen"] else None
        with self.leading(owner, room) as connection:
            connection.execute(_task(room, number).values(**changes))

    def time_task(self, owner: str, room: Room, number: int, *, left_s: float | None) -> None:
        """Give a task so much time from now, as the leader of its room; None takes its timer off.

        Raises:
            InvalidInput: another visitor leads the room.
        """
        with self.leading(owner, room) as connection:
            ends = None if left_s is None else epoch_s() + left_s
            connection.execute(_task(room, number).values(ends_epoch_s=ends))

    def tasks_of_room(self, room: Room) -> tuple[RoomTask, ...]:
        """Return what a room was asked to do, the oldest first."""
        wanted = select(ROOM_TASKS).where(ROOM_TASKS.c.room == room.number).order_by(ROOM_TASKS.c.number)
        with self.reading(snapshot=False) as connection:
            now_s = seconds_since_1970(connection)
            return tuple(_task_from(row, now_s) for row in connection.execute(wanted))

    def tasks_followed(self, owner: str) -> tuple[tuple[Room, RoomTask], ...]:
        """Return the tasks of the open rooms that a visitor is in, the oldest first: what they may open of a lesson."""
        now = self.now()
        in_them = select(PARTICIPANTS.c.room).where(PARTICIPANTS.c.owner == owner, PARTICIPANTS.c.removed_utc.is_(None))
        are_open = (ROOMS.c.closed_utc.is_(None), ROOMS.c.ends_utc > now)
        with self.reading(snapshot=False) as connection:
            rooms = {
                row.number: room_from(row, now)
                for row in connection.execute(select(ROOMS).where(ROOMS.c.number.in_(in_them), *are_open))
            }
            wanted = select(ROOM_TASKS).where(ROOM_TASKS.c.room.in_(rooms)).order_by(ROOM_TASKS.c.number)
            now_s = seconds_since_1970(connection)
            return tuple((rooms[row.room], _task_from(row, now_s)) for row in connection.execute(wanted))

    def give_guess(self, owner: str, room: Room, number: int, *, guess: float) -> None:
        """Note what a participant of a room guesses at a task; their last guess counts.

        Args:
            owner: who guesses.
            room: an open one they are in.
            number: of the task.
            guess: in SI base units.

        Raises:
            InvalidInput: they are not in the room, it is not open, or the task takes no answers any more.
            NotFound: the room has no such task.
        """
        with self.writing(durable=True) as connection:
            check_open(connection, room, self.now())
            me = theirs(connection, owner, room)
            if me is None or me.removed_utc is not None:
                raise InvalidInput("only participants of this room can guess: join it first")
            mine = ROOM_TASKS.c.number == number, ROOM_TASKS.c.room == room.number
            row = connection.execute(select(ROOM_TASKS).where(*mine)).one_or_none()
            if row is None:
                raise NotFound("this task no longer exists")
            if not _task_from(row, seconds_since_1970(connection)).takes_answers:
                raise InvalidInput("this task no longer takes answers")
            given = {"guess": guess, "created_utc": self.now()}
            add = insertion(connection, ROOM_GUESSES).values(task=number, participant=me.number, **given)
            connection.execute(add.on_conflict_do_update(index_elements=("task", "participant"), set_=given))

    def guesses_of_room(self, room: Room) -> tuple[RoomGuess, ...]:
        """Return what those in a room guessed, by task and participant."""
        wanted = (
            select(ROOM_GUESSES)
            .join(ROOM_TASKS, ROOM_TASKS.c.number == ROOM_GUESSES.c.task)
            .join(PARTICIPANTS, PARTICIPANTS.c.number == ROOM_GUESSES.c.participant)
            .where(ROOM_TASKS.c.room == room.number, PARTICIPANTS.c.removed_utc.is_(None))
            .order_by(ROOM_GUESSES.c.task, ROOM_GUESSES.c.participant)
        )
        with self.reading(snapshot=False) as connection:
            return tuple(
                RoomGuess(row.task, row.participant, row.guess, row.created_utc) for row in connection.execute(wanted)
            )

    def answers_of_room(self, room: Room) -> tuple[tuple[int, Answer], ...]:
        """Return what those in a room answered in lessons while it was open, with who did, the oldest first."""
        wanted = (
            select(PARTICIPANTS.c.number.label("participant"), ANSWERS)
            .join(ANSWERS, ANSWERS.c.owner == PARTICIPANTS.c.owner)
            .where(*_inside(room, ANSWERS.c.created_utc))
            .order_by(ANSWERS.c.number.desc())
            .limit(MOST_ANSWERS)
        )
        with self.reading(snapshot=False) as connection:
            rows = connection.execute(wanted).all()
        return tuple((row.participant, answer_from(row)) for row in reversed(rows))

    def runs_of_room(self, room: Room) -> tuple[AskedRun, ...]:
        """Return the runs that those in a room and its leaders asked for while it was open, as they were asked for."""
        leaders = select(ROOM_LEADERS.c.owner).where(ROOM_LEADERS.c.room == room.number)
        owners = leaders.union(select(PARTICIPANTS.c.owner).where(PARTICIPANTS.c.room == room.number))
        own = select(RUNS.c.id.label("run_id"), RUNS.c.owner, RUNS.c.created_utc.label("asked_utc"))
        joined = select(RUN_ASKERS.c.run_id, RUN_ASKERS.c.owner, RUN_ASKERS.c.asked_utc)
        asked = own.where(RUNS.c.owner.in_(owners)).union_all(joined.where(RUN_ASKERS.c.owner.in_(owners))).subquery()
        count = select(func.count()).where(RESULTS.c.run_id == RUNS.c.id, ~RESULTS.c.provisional).scalar_subquery()
        theirs_in = and_(PARTICIPANTS.c.owner == asked.c.owner, PARTICIPANTS.c.room == room.number)
        of_leader = and_(PARTICIPANTS.c.number.is_(None), *_while_open(room, asked.c.asked_utc))
        columns = RUNS.c.id, RUNS.c.origin, asked.c.asked_utc, PARTICIPANTS.c.number, count.label("results")
        wanted = (
            select(*columns)
            .select_from(asked.join(RUNS, RUNS.c.id == asked.c.run_id).outerjoin(PARTICIPANTS, theirs_in))
            .where(*LISTED, or_(and_(*_inside(room, asked.c.asked_utc)), of_leader))
            .order_by(asked.c.asked_utc)
        )
        found: dict[str, list[Any]] = {}
        with self.reading(snapshot=False) as connection:
            for row in connection.execute(wanted):
                found.setdefault(row.id, []).append(row)
        return tuple(
            AskedRun(run_id, rows[0].origin, tuple((row.number, row.asked_utc) for row in rows), rows[0].results)
            for run_id, rows in found.items()
        )

    def results_of_runs(self, run_ids: Sequence[str]) -> Mapping[str, Sequence[Result]]:
        """Return the final results of runs, by id, in the order of their cases; those this version understands."""
        found: dict[str, list[Result]] = {}
        at_once = 200  # runs whose results are read together
        for first in range(0, len(run_ids), at_once):
            wanted = select(RESULTS.c.run_id, RESULTS.c.payload, RESULTS.c.environment).where(
                RESULTS.c.run_id.in_(run_ids[first : first + at_once]), ~RESULTS.c.provisional
            )
            with self.reading() as connection:
                rows = connection.execute(wanted.order_by(RESULTS.c.run_id, RESULTS.c.case_index)).all()
                shared = shared_environments(connection, {row.environment for row in rows})
            for run_id, result in decodable(((row.run_id, row.payload, row.environment) for row in rows), shared):
                found.setdefault(run_id, []).append(result)
        return found

    def sent_by(self, owner: str) -> int:
        """Return how many results a sender sent."""
        wanted = select(func.count()).select_from(RESULTS.join(RUNS)).where(RUNS.c.owner == owner)
        with self.reading(snapshot=False) as connection:
            return connection.scalar(wanted) or 0

    def sent_to(self, room: Room) -> int:
        """Return how many results were sent to a room."""
        senders = select(PARTICIPANTS.c.owner).where(
            PARTICIPANTS.c.room == room.number, PARTICIPANTS.c.owner.startswith(PREFIX)
        )
        wanted = select(func.count()).select_from(RESULTS.join(RUNS)).where(RUNS.c.owner.in_(senders))
        with self.reading(snapshot=False) as connection:
            return connection.scalar(wanted) or 0


def _inside(room: Room, when: ColumnElement[str]) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a visitor is in a room, and that a run was asked for since they are."""
    of_room = PARTICIPANTS.c.room == room.number, PARTICIPANTS.c.removed_utc.is_(None)
    return (*of_room, when >= PARTICIPANTS.c.joined_utc, *_while_open(room, when))


def _while_open(room: Room, when: ColumnElement[str]) -> tuple[ColumnElement[bool], ...]:
    return when >= room.created_utc, when <= min(room.closed_utc or room.ends_utc, room.ends_utc)


def _task(room: Room, number: int) -> Any:
    return update(ROOM_TASKS).where(ROOM_TASKS.c.number == number, ROOM_TASKS.c.room == room.number)


def _task_from(row: Row[Any], now_s: float) -> RoomTask:
    left_s = None if row.ends_epoch_s is None else max(0.0, row.ends_epoch_s - now_s)
    return RoomTask(
        number=row.number,
        kind=row.kind,
        settings=row.settings,
        created_utc=row.created_utc,
        revealed=row.revealed,
        frozen_utc=row.frozen_utc,
        hidden=row.hidden,
        left_s=left_s,
    )


def owner_of_sender(room: Room, secret: str) -> str:
    """Return the owner of runs that are sent to a room with a secret; another one in every room."""
    return f"{PREFIX}{sha256(f'{room.code} {secret}'.encode()).hexdigest()[:32]}"
