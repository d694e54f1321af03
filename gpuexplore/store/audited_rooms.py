"""What is done to rooms as a whole, written down."""

from gpuexplore.rooms import Room
from gpuexplore.store import rooms
from gpuexplore.store.audit import Action, note
from gpuexplore.store.database import Database


def open_room(database: Database, owner: str, title: str, hours: int) -> tuple[Room, str]:
    """Open a room, as `rooms.open_room` does."""
    room, key = rooms.open_room(database, owner, title, hours)
    _note(database, Action.ROOM_OPENED, owner, room)
    return room, key


def close_room(database: Database, owner: str, room: Room) -> None:
    """Close a room, as `rooms.close_room` does."""
    rooms.close_room(database, owner, room)
    _note(database, Action.ROOM_CLOSED, owner, room)


def delete_room(database: Database, owner: str, room: Room) -> None:
    """Delete a room, as `rooms.delete_room` does."""
    rooms.delete_room(database, owner, room)
    _note(database, Action.ROOM_DELETED, owner, room)


def _note(database: Database, action: Action, owner: str, room: Room) -> None:
    with database.writing() as connection:
        note(connection, database.now(), (action, owner, room.code))
