"""The database of this home as a file that is copied and replaced; one of a server by its own programs."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from gpuexplore.errors import InvalidInput
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.store.database import URL_VARIABLE, because, database_url


def database_file(instead: str) -> Path:
    """Return the file of SQLite.

    Args:
        instead: the command for a database of PostgreSQL, without its name; `--dbname` is added.

    Raises:
        InvalidInput: it is another database; says which command does it there.
    """
    try:
        url = make_url(database_url())
    except ArgumentError as error:
        raise InvalidInput.of("database", URL_VARIABLE, "those in SQLAlchemy's form") from error
    if url.get_backend_name() == "sqlite":
        return Path(str(url.database))
    raise InvalidInput(f"the database is a server's: {instead} --dbname={_shown(url)!r}")


def check_unsupervised() -> None:
    """Return when no supervisor of this host works with the database.

    Raises:
        StoreUnavailable: one does; names it.
    """
    lock = supervisor_lock(database_url())
    if lock.is_held():
        raise because(f"{lock.holder() or 'a supervisor'} works with it: stop the web server and the supervisor")


def _shown(url: URL) -> str:
    """Return the name as PostgreSQL's programs take it, without the password, for which they ask or look."""
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    return shown.render_as_string()
