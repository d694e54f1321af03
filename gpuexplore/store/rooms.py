"""Rooms in the database: who may do what is decided here, for all callers; what is done to a whole room is noted."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, or_, select, update

from gpuexplore.core.errors import InvalidInput, NotFound, require
from gpuexplore.rooms import MOST_EVER, MOST_PEOPLE, Participant, Room, RoomState, name_key, new_code, spoken
from gpuexplore.store.database import Action, Database, epoch_s, insertion, note, seconds_since_1970
from gpuexplore.store.tables import PARTICIPANTS, ROOM_LEADERS, ROOMS

MOST_OPEN = 20  # rooms that one leader may have open


class Rooms(Database):
    """Rooms, their leaders and their participants."""

    def open_room(self, owner: str, title: str, hours: int) -> tuple[Room, str]:
        """Open a room that `owner` leads; return it and the key that the leader's link carries, which is kept nowhere.

        Args:
            owner: who leads it.
            title: as `gpuexplore.rooms.read_title` returns it.
            hours: until it ends by itself.

        Raises:
            InvalidInput: too many of theirs are open.
        """
        key = secrets.token_urlsafe(24)
        now = self.now()
        ends = (datetime.fromisoformat(now) + timedelta(hours=hours)).isoformat(timespec="microseconds")
        row = {"title": title, "key_digest": _digest(key), "created_utc": now, "ends_utc": ends}
        with self.writing(durable=True) as connection:
            mine = select(func.count()).select_from(ROOMS.join(ROOM_LEADERS)).where(ROOM_LEADERS.c.owner == owner)
            still_open = mine.where(ROOMS.c.closed_utc.is_(None), ROOMS.c.ends_utc > now)
            if (connection.scalar(still_open) or 0) >= MOST_OPEN:
                raise InvalidInput(f"you have {MOST_OPEN} open rooms: close one first")
            number = _inserted(connection, row)
            connection.execute(insert(ROOM_LEADERS).values(owner=owner, room=number))
            room = room_from(connection.execute(select(ROOMS).where(ROOMS.c.number == number)).one(), now)
        self._note(Action.ROOM_OPENED, owner, room)
        return room, key

    def room_of(self, code: str) -> Room | None:
        """Return the room with a code, as `gpuexplore.rooms.read_code` returns it; None where there is none."""
        with self.reading(snapshot=False) as connection:
            row = connection.execute(select(ROOMS).where(ROOMS.c.code == code)).one_or_none()
        return None if row is None else room_from(row, self.now())

    def rooms_of(self, owner: str) -> tuple[Room, ...]:
        """Return the rooms that a visitor leads or is in, the newest first."""
        led = select(ROOM_LEADERS.c.room).where(ROOM_LEADERS.c.owner == owner)
        joined = select(PARTICIPANTS.c.room).where(PARTICIPANTS.c.owner == owner, PARTICIPANTS.c.removed_utc.is_(None))
        wanted = select(ROOMS).where(or_(ROOMS.c.number.in_(led), ROOMS.c.number.in_(joined)))
        with self.reading(snapshot=False) as connection:
            rows = connection.execute(wanted.order_by(ROOMS.c.number.desc())).all()
        return tuple(room_from(row, self.now()) for row in rows)

    def leads(self, owner: str, room: Room) -> bool:
        """Return whether a visitor leads a room."""
        with self.reading(snapshot=False) as connection:
            return _leads(connection, owner, room.number)

    def take_lead(self, owner: str, room: Room, key: str) -> bool:
        """Let a visitor who comes by the leader's link lead as well; return whether the key was right."""
        with self.writing(durable=True) as connection:
            digest = connection.scalar(select(ROOMS.c.key_digest).where(ROOMS.c.number == room.number)) or ""
            if not compare_digest(digest, _digest(key)):
                return False
            row = {"owner": owner, "room": room.number}
            connection.execute(insertion(connection, ROOM_LEADERS).values(**row).on_conflict_do_nothing())
            return True

    def new_leader_key(self, owner: str, room: Room) -> str:
        """Return a new key for the leader's link; the one before opens nothing any more.

        Raises:
            InvalidInput: another visitor leads the room.
        """
        key = secrets.token_urlsafe(24)
        self._change(owner, room, key_digest=_digest(key))
        return key

    def close_room(self, owner: str, room: Room) -> None:
        """Close a room: it can be read, and no one joins any more.

        Raises:
            InvalidInput: another visitor leads it.
        """
        with self.leading(owner, room) as connection:
            closing = update(ROOMS).where(ROOMS.c.number == room.number, ROOMS.c.closed_utc.is_(None))
            connection.execute(closing.values(closed_utc=self.now()))
        self._note(Action.ROOM_CLOSED, owner, room)

    def announce(self, owner: str, room: Room, *, message: str, link: str) -> None:
        """Put a message and a page of ours on the pages of all in a room, as its leader; empty ones remove it.

        Args:
            owner: who says it.
            room: to whom.
            message: as `gpuexplore.rooms.read_message` returns it.
            link: as `gpuexplore.rooms.read_link` returns it.

        Raises:
            InvalidInput: another visitor leads the room.
        """
        self._change(owner, room, message=message, link=link)

    def show_names(self, owner: str, room: Room, *, shown: bool) -> None:
        """Let the wall show who is who, or not, as the leader of a room.

        Raises:
            InvalidInput: another visitor leads it.
        """
        self._change(owner, room, names_shown=shown)

    def set_weight(self, room: Room, weight: int) -> None:
        """Let those in a room have `weight` times as much of the devices as others have, while both wait.

        For who has the machine, as it is taken from others: no page offers it.
        """
        with self.writing(durable=True) as connection:
            connection.execute(update(ROOMS).where(ROOMS.c.number == room.number).values(weight=weight))

    def delete_room(self, owner: str, room: Room) -> None:
        """Delete a room with everything in it.

        Raises:
            InvalidInput: another visitor leads it.
        """
        with self.leading(owner, room) as connection:
            connection.execute(delete(ROOMS).where(ROOMS.c.number == room.number))
        self._note(Action.ROOM_DELETED, owner, room)

    def join_room(self, owner: str, room: Room, name: str) -> Participant:
        """Let a visitor in under a name, as `gpuexplore.rooms.read_name` returns it, or rename one who is in already.

        Raises:
            InvalidInput: the name is taken, the room is not open or full, or its leader sent them out.
        """
        row = {"room": room.number, "owner": owner, "name": name, "name_key": name_key(name)}
        with self.writing(durable=True) as connection:
            check_open(connection, room, self.now())
            here = theirs(connection, owner, room)
            if here is not None and here.removed_utc is not None:
                raise InvalidInput("the leader removed you from this room")
            _check_name(connection, room, name, but=here.number if here else None)
            if here is not None:
                _rename(connection, room, here.number, name)
            else:
                _check_space(connection, room)
                new = row | {"joined_utc": self.now(), "seen_epoch_s": epoch_s()}
                connection.execute(insert(PARTICIPANTS).values(**new))
            found = theirs(connection, owner, room)
            assert found is not None
            return _participant(found, seconds_since_1970(connection))

    def participant_of(self, owner: str, room: Room) -> Participant | None:
        """Return who a visitor is in a room; None for one who is not in it."""
        with self.reading(snapshot=False) as connection:
            row = theirs(connection, owner, room)
            return None if row is None else _participant(row, seconds_since_1970(connection))

    def participants(self, room: Room) -> tuple[Participant, ...]:
        """Return who is in a room, by when they joined; without those who were removed."""
        wanted = select(PARTICIPANTS).where(PARTICIPANTS.c.room == room.number, PARTICIPANTS.c.removed_utc.is_(None))
        with self.reading(snapshot=False) as connection:
            now_s = seconds_since_1970(connection)
            return tuple(_participant(row, now_s) for row in connection.execute(wanted.order_by(PARTICIPANTS.c.number)))

    def see_participants(self, numbers: Iterable[int]) -> None:
        """Note that these are here now: together, as each of a hundred by itself would be a transaction."""
        with self.writing() as connection:
            connection.execute(
                update(PARTICIPANTS).where(PARTICIPANTS.c.number.in_(list(numbers))).values(seen_epoch_s=epoch_s())
            )

    def rename_participant(self, owner: str, room: Room, number: int, *, name: str) -> None:
        """Give a participant of a room another name, as its leader.

        Raises:
            InvalidInput: another visitor leads the room, or the name is taken.
            NotFound: no participant has this number.
        """
        with self.leading(owner, room) as connection:
            _check_name(connection, room, name, but=number)
            if not _rename(connection, room, number, name):
                raise NotFound("this participant has left")

    def remove_participant(self, owner: str, room: Room, number: int) -> None:
        """Send a participant out of a room, as its leader: their name is free again, and they cannot come back.

        Raises:
            InvalidInput: another visitor leads the room.
        """
        with self.leading(owner, room) as connection:
            gone = update(PARTICIPANTS).where(PARTICIPANTS.c.number == number, PARTICIPANTS.c.room == room.number)
            connection.execute(gone.values(removed_utc=self.now(), name_key=f"\x7f{number}"))

    def leave_room(self, owner: str, room: Room) -> None:
        """Leave a room, with everything that one answered there."""
        with self.writing(durable=True) as connection:
            connection.execute(
                delete(PARTICIPANTS).where(
                    PARTICIPANTS.c.owner == owner,
                    PARTICIPANTS.c.room == room.number,
                    PARTICIPANTS.c.removed_utc.is_(None),  # who was sent out cannot come in again by leaving
                )
            )

    @contextmanager
    def leading(self, owner: str, room: Room) -> Iterator[Connection]:
        """Give a connection that writes, to a leader of the room."""
        with self.writing(durable=True) as connection:
            if not _leads(connection, owner, room.number):
                raise InvalidInput(f"room {spoken(room.code)}: only its leader can do this")
            yield connection

    def _change(self, owner: str, room: Room, **values: str | bool) -> None:
        """Change columns of a room, as its leader."""
        with self.leading(owner, room) as connection:
            connection.execute(update(ROOMS).where(ROOMS.c.number == room.number).values(**values))

    def _note(self, action: Action, owner: str, room: Room) -> None:
        """Write down what was done to a room as a whole."""
        with self.writing() as connection:
            note(connection, self.now(), (action, owner, room.code))


def _inserted(connection: Connection, row: dict[str, str]) -> int:
    for _ in range(8):  # a code may be taken
        made = insertion(connection, ROOMS).values(**row, code=new_code()).on_conflict_do_nothing()
        number = connection.execute(made.returning(ROOMS.c.number)).scalar()
        if number is not None:
            return int(number)
    raise InvalidInput("no free room code was found: delete old rooms")


def _leads(connection: Connection, owner: str, number: int) -> bool:
    led = select(ROOM_LEADERS.c.room).where(ROOM_LEADERS.c.owner == owner, ROOM_LEADERS.c.room == number)
    return connection.execute(led).first() is not None


def check_open(connection: Connection, room: Room, now: str) -> None:
    """Return where a room is open.

    Raises:
        InvalidInput: it is not.
    """
    row = connection.execute(select(ROOMS).where(ROOMS.c.number == room.number)).one_or_none()
    if row is None or (state := _state(row, now)) is not RoomState.OPEN:
        raise InvalidInput(f"room {spoken(room.code)} is {state if row else 'deleted'}: it can no longer be joined")


def _check_space(connection: Connection, room: Room) -> None:
    """Raise where a room is full; who was removed makes room, until a program has joined again and again."""
    ever = select(func.count()).select_from(PARTICIPANTS).where(PARTICIPANTS.c.room == room.number)
    here = ever.where(PARTICIPANTS.c.removed_utc.is_(None))
    for count, most in ((here, MOST_PEOPLE), (ever, MOST_EVER)):
        if (connection.scalar(count) or 0) >= most:
            raise InvalidInput(f"room {spoken(room.code)} is full: {most} people have joined")


def _check_name(connection: Connection, room: Room, name: str, *, but: int | None) -> None:
    taken = select(PARTICIPANTS.c.number).where(
        PARTICIPANTS.c.room == room.number, PARTICIPANTS.c.name_key == name_key(name)
    )
    require(connection.scalar(taken) in (None, but), "name", name, "a name that is not taken in this room")


def _rename(connection: Connection, room: Room, number: int, name: str) -> bool:
    renamed = update(PARTICIPANTS).where(PARTICIPANTS.c.number == number, PARTICIPANTS.c.room == room.number)
    renamed = renamed.where(PARTICIPANTS.c.removed_utc.is_(None))
    return connection.execute(renamed.values(name=name, name_key=name_key(name))).rowcount > 0


def theirs(connection: Connection, owner: str, room: Room) -> Row[Any] | None:
    """Return the row of a visitor in a room; None for one who is not in it."""
    wanted = select(PARTICIPANTS).where(PARTICIPANTS.c.owner == owner, PARTICIPANTS.c.room == room.number)
    return connection.execute(wanted).one_or_none()


def _state(row: Row[Any], now: str) -> RoomState:
    if row.closed_utc is not None:
        return RoomState.CLOSED
    return RoomState.OPEN if now < row.ends_utc else RoomState.ENDED


def room_from(row: Row[Any], now: str) -> Room:
    """Return the room of a row, as it is at the time `now`."""
    return Room(
        number=row.number,
        code=row.code,
        title=row.title,
        created_utc=row.created_utc,
        ends_utc=row.ends_utc,
        closed_utc=row.closed_utc,
        state=_state(row, now),
        message=row.message,
        link=row.link,
        names_shown=row.names_shown,
        weight=row.weight,
    )


def _participant(row: Row[Any], now_s: float) -> Participant:
    return Participant(
        number=row.number,
        name=row.name,
        joined_utc=row.joined_utc,
        removed=row.removed_utc is not None,
        seen_s=max(0.0, now_s - row.seen_epoch_s),
    )


def _digest(key: str) -> str:
    return sha256(key.encode(errors="surrogatepass")).hexdigest()
