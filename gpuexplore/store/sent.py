"""What was measured elsewhere and sent to a room: whose it is, and how much of it there is."""

from hashlib import sha256

from sqlalchemy import func, select

from gpuexplore.rooms import Room
from gpuexplore.store.database import Database
from gpuexplore.store.tables import PARTICIPANTS, RESULTS, RUNS

PREFIX = "sent:"  # no cookie has a colon, and accounts begin otherwise: who sends is no visitor of the pages
DIGITS = 32


def owner_of_sender(room: Room, secret: str) -> str:
    """Return by what name whoever sends to a room with a secret owns runs; another one in every room."""
    return PREFIX + sha256(f"{room.code} {secret}".encode()).hexdigest()[:DIGITS]


def sent_by(database: Database, owner: str) -> int:
    """Return how many results somebody sent."""
    wanted = select(func.count()).select_from(RESULTS.join(RUNS)).where(RUNS.c.owner == owner)
    with database.reading(snapshot=False) as connection:
        return connection.scalar(wanted) or 0


def sent_to(database: Database, room: Room) -> int:
    """Return how many results were sent to a room."""
    senders = select(PARTICIPANTS.c.owner).where(
        PARTICIPANTS.c.room == room.number, PARTICIPANTS.c.owner.startswith(PREFIX)
    )
    wanted = select(func.count()).select_from(RESULTS.join(RUNS)).where(RUNS.c.owner.in_(senders))
    with database.reading(snapshot=False) as connection:
        return connection.scalar(wanted) or 0
