"""Where runs, results, own peaks and heartbeats live: SQLite by default, PostgreSQL by URL."""

from collections.abc import Callable
from datetime import datetime
from sqlite3 import DatabaseError
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from gpuexplore.errors import InvalidInput
from gpuexplore.store import attempts, peaks, queue, runs, supervisors
from gpuexplore.store.database import Database, connect, database_url, url_is_given, utc_now
from gpuexplore.store.queue import RunClaim
from gpuexplore.store.supervisors import Supervisor, SupervisorState
from gpuexplore.store.upgrade import upgrade

__all__ = ["RunClaim", "Store", "Supervisor", "SupervisorState", "open_store"]


class Store(Database):
    """Everything that can be asked of the database, by who asks; safe to use from several threads."""

    __slots__ = ()

    # owners
    submit = runs.submit
    record = runs.record
    load = runs.load
    load_summary = runs.load_summary
    results_after = runs.results_after
    history = runs.history
    measured_results = runs.measured_results
    request_cancel = runs.request_cancel
    own_peaks = peaks.own_peaks
    set_own_peak = peaks.set_own_peak
    delete_own_peak = peaks.delete_own_peak
    own_bandwidth = peaks.own_bandwidth
    set_own_bandwidth = peaks.set_own_bandwidth
    delete_own_bandwidth = peaks.delete_own_bandwidth
    # anybody
    position = queue.position
    queue_length = queue.queue_length
    supervisor = supervisors.supervisor
    # supervisors
    heartbeat = supervisors.heartbeat
    requeue_orphans = queue.requeue_orphans
    claim = queue.claim
    cancel_requested = runs.cancel_requested
    set_current = attempts.set_current
    add_result = attempts.add_result
    finish = attempts.finish
    release = attempts.release

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(url: str | None = None, *, clock: Callable[[], datetime] = utc_now) -> Store:
    """Return the store at `url`, its schema up to date.

    Args:
        url: SQLAlchemy's form, e.g. `sqlite:////data/gpuexplore.sqlite3`; without one the environment's
            GPUEXPLORE_DATABASE_URL counts, then the file in the data directory.
        clock: what dates the runs.

    Raises:
        InvalidInput: there is no usable database there; says why.
    """
    try:
        engine = connect(database_url(url))
        upgrade(engine)
    except (SQLAlchemyError, DatabaseError, ImportError, OSError) as error:
        accepted = f"those that can be opened and written ({str(error).splitlines()[0]}); see GPUEXPLORE_HOME"
        raise InvalidInput.of(
            "database", "GPUEXPLORE_DATABASE_URL" if url_is_given(url) else "file", accepted
        ) from error
    return Store(engine, clock)
