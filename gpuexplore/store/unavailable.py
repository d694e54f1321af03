"""What a user reads when the database cannot be used now: one sentence, whatever the driver said."""

import logging

from sqlalchemy.exc import InterfaceError, InternalError, OperationalError

from gpuexplore.errors import StoreUnavailable

LOG = logging.getLogger(__name__)
KEPT = "Nothing that was stored is lost"
CAUSES = (  # of SQLite's texts (https://www.sqlite.org/rescode.html) and of PostgreSQL's
    (("database is locked", "lock timeout"), f"another program keeps it locked. {KEPT}: try again"),
    (("disk is full", "no space left", "disk full"), f"its disk is full. {KEPT}: make room"),
    (("readonly", "read-only"), f"it is read-only. {KEPT}: make the file and its directory writable"),
    (("malformed", "not a database", "corrupt"),
     "its file is damaged. Who runs this server restores a backup, or moves the file away"),
    (("unable to open", "no such table", "no such column", "undefinedtable", "does not exist", "deleted or replaced"),
     "its file was deleted or replaced. Who runs this server restores a backup, or starts it again with an empty one"),
    (("disk i/o error",), "its disk does not answer"),
)  # fmt: skip
LOCKED, FULL = CAUSES[0][1], CAUSES[1][1]
UNREACHABLE = f"the database server does not answer. {KEPT}: it is tried again"


def is_unavailable(error: BaseException) -> bool:
    """Return whether the database is to blame, and not the statement."""
    return isinstance(error, OperationalError | InterfaceError | InternalError) or _cause(error) is not None


def unavailable(error: BaseException) -> StoreUnavailable:
    """Return what to tell a user; the driver's own words go to the log."""
    LOG.warning("The database cannot be used: %s", _said(error))
    return because(_cause(error) or UNREACHABLE)


def because(cause: str) -> StoreUnavailable:
    """Return the error that tells `cause`."""
    return StoreUnavailable(f"The database cannot be used now: {cause}.")


def _cause(error: BaseException) -> str | None:
    said = _said(error).lower()
    return next((cause for words, cause in CAUSES if any(word in said for word in words)), None)


def _said(error: BaseException) -> str:
    driver = getattr(error, "orig", None) or error
    return f"{type(driver).__name__}: {driver}".splitlines()[0]
