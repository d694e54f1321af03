"""The audit log: who ran, cancelled and deleted what, and when, written in the transaction of the action.

An account is named as it signed in; a browser by a digest of its cookie, which tells browsers apart and is no
credential.
"""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import Connection, RowMapping, insert, select

from gpuexplore.store.database import Database
from gpuexplore.store.tables import AUDIT

ACCOUNT_PREFIX = "user:"  # of the owners whom a login or a proxy vouches for
MOST_LISTED = 100_000


class Action(StrEnum):
    """Audited actions."""

    SUBMITTED = "run submitted"
    SAVED = "run saved"
    CANCELLED = "run cancelled"
    DELETED = "run deleted"
    RESTORED = "run restored"
    PRUNED = "runs pruned"
    PAUSED = "device paused"
    DRAINED = "device drained"
    RESERVED = "device reserved"
    RESUMED = "device resumed"
    ROOM_OPENED = "room opened"
    ROOM_CLOSED = "room closed"
    ROOM_DELETED = "room deleted"


def note(connection: Connection, at_utc: str, entry: tuple[Action, str, str], address: str | None = None) -> None:
    """Write down what is done in this transaction.

    Args:
        connection: in it.
        at_utc: now.
        entry: the action, the owner who does it, and to what.
        address: where from.
    """
    action, owner, thing = entry
    row = {"at_utc": at_utc, "who": shown(owner), "address": address, "action": action.value, "object": thing}
    connection.execute(insert(AUDIT).values(**row))


def noted(database: Database, since_utc: str = "", *, limit: int = 1000) -> Sequence[RowMapping]:
    """Return what was done since then, the newest first, `limit` rows at most.

    Of each it is `at_utc`, in ISO 8601, `who` did it, an account, `command line`, or `browser` and a digest of its
    cookie, from which `address`, None for this machine and where it is unknown, the `action`, and its `object`: the id
    of a run, or the code of a room.
    """
    columns = (AUDIT.c.at_utc, AUDIT.c.who, AUDIT.c.address, AUDIT.c.action, AUDIT.c.object)
    wanted = select(*columns).where(AUDIT.c.at_utc >= since_utc).order_by(AUDIT.c.number.desc()).limit(limit)
    with database.reading() as connection:
        return connection.execute(wanted).mappings().all()


def shown(owner: str) -> str:
    """Return an owner as the log names them."""
    if owner.startswith(ACCOUNT_PREFIX):
        return owner.removeprefix(ACCOUNT_PREFIX)
    if owner == "command line":
        return owner
    return f"browser {sha256(owner.encode(errors='surrogatepass')).hexdigest()[:12]}"
