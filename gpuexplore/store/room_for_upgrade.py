"""Whether a disk has room for an upgrade: for the copy, and for what the new schema writes before it counts."""

import shutil
from pathlib import Path

from gpuexplore.store.sqlite_connection import size_of
from gpuexplore.store.unavailable import because
from gpuexplore.units import format_bytes

# Of the database's size: the copy, then tables and indexes that are written again, in the write-ahead log and in the
# file. Seen: 1.1 from schema 0008, 2.1 from 0003, and 3.1 of a database that is nothing but runs.
NEEDED = 3.5
LEAST_BYTES = 10_000_000


def needed_bytes(file: Path) -> int:
    """Return how much an upgrade of this file of SQLite takes of its disk, at most."""
    return max(LEAST_BYTES, round(NEEDED * size_of(file)))


def free_bytes(file: Path) -> int:
    """Return how much of its disk is free."""
    return shutil.disk_usage(file.parent).free


def check_room(file: Path) -> None:
    """Return when there is room to upgrade this file of SQLite.

    Raises:
        StoreUnavailable: there is not; says what is needed and what there is.
    """
    needed, free = needed_bytes(file), free_bytes(file)
    if free < needed:
        raise because(
            f"its upgrade takes {format_bytes(needed)} of its disk for a copy and for the new schema, and "
            f"{format_bytes(free)} are free. Nothing has changed: make room, or let the version before serve it"
        )
