"""Runs, results, own peaks and heartbeats as they are kept: SQLite by default, PostgreSQL by URL.

`Store` is the only interface; each of its methods is a function of one module. A run enters by `submission.py`; its
supervisor takes it and writes what comes of it by `claims.py`, in the order of `turns.py`, on devices that no
administrator restricts (`restrictions.py`); `positions.py` says when it starts. `runs.py` and `listing.py` are what
pages read, `run_states.py` says who may change a run's state and who shares it, `leases.py` what becomes of the runs
of a supervisor that died. `tables.py` has the tables, `migrations/` their history, `upgrade.py` runs it; `prune.py` and
`backup.py` are for those who keep a server.

It imports values, rooms and operations, and nothing that computes or draws. A column is a migration, its line in
`tables.py` and a test that an older database still opens; saved runs stay readable.
"""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Self

from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from gpuexplore.core.errors import InvalidInput
from gpuexplore.store import (
    answers,
    audit,
    claims,
    leases,
    listing,
    peaks,
    positions,
    prune,
    restrictions,
    room_tasks,
    rooms,
    run_states,
    runs,
    submission,
    turns,
)
from gpuexplore.store.claims import WorkClaim
from gpuexplore.store.database import Database, connect, database_url, unavailable, url_is_given, utc_now
from gpuexplore.store.leases import Supervisor, SupervisorState
from gpuexplore.store.listing import Description, ListedRun, Wanted
from gpuexplore.store.positions import WaitingRun
from gpuexplore.store.upgrade import upgrade

__all__ = [
    "Description",
    "ListedRun",
    "Store",
    "Supervisor",
    "SupervisorState",
    "WaitingRun",
    "Wanted",
    "WorkClaim",
    "open_store",
]


class Store(Database):
    """Everything that can be asked of the database, by who asks; safe to use from several threads."""

    __slots__ = ()

    # owners
    submit = submission.submit
    ask = submission.ask
    submit_all = submission.submit_all
    load_activity = runs.load_activity
    record = submission.record
    load = runs.load
    load_summary = runs.load_summary
    results_after = runs.results_after
    history = runs.history
    measured_results = runs.measured_results
    listed = listing.listed
    listed_run = listing.listed_run
    tags_in_use = listing.tags_in_use
    device_names = listing.device_names
    describe = listing.describe
    delete_run = listing.delete_run
    restore_run = listing.restore_run
    request_cancel = run_states.request_cancel
    own_peaks = peaks.own_peaks
    set_own_peak = peaks.set_own_peak
    delete_own_peak = peaks.delete_own_peak
    own_bandwidth = peaks.own_bandwidth
    set_own_bandwidth = peaks.set_own_bandwidth
    delete_own_bandwidth = peaks.delete_own_bandwidth
    add_answer = answers.add_answer
    set_outcomes = answers.set_outcomes
    answers_of = answers.answers_of
    erase_answers = answers.erase_answers
    see = run_states.see
    rooms_of = rooms.rooms_of
    join_room = rooms.join_room
    leave_room = rooms.leave_room
    participant_of = rooms.participant_of
    tasks_followed = room_tasks.tasks_followed
    give_guess = room_tasks.give_guess
    # leaders of a room
    open_room = rooms.open_room
    leads = rooms.leads
    take_lead = rooms.take_lead
    new_leader_key = rooms.new_leader_key
    announce = rooms.announce
    show_names = rooms.show_names
    set_weight = rooms.set_weight
    add_task = room_tasks.add_task
    mark_task = room_tasks.mark_task
    time_task = room_tasks.time_task
    close_room = rooms.close_room
    delete_room = rooms.delete_room
    rename_participant = rooms.rename_participant
    remove_participant = rooms.remove_participant
    # everyone
    room_of = rooms.room_of
    participants = rooms.participants
    see_participants = rooms.see_participants
    tasks_of_room = room_tasks.tasks_of_room
    guesses_of_room = room_tasks.guesses_of_room
    answers_of_room = room_tasks.answers_of_room
    runs_of_room = room_tasks.runs_of_room
    results_of_runs = room_tasks.results_of_runs
    newest_result = runs.newest_result
    newest_alike = runs.newest_alike
    askers_of = run_states.askers_of
    answers_since = answers.answers_since
    running = runs.running
    running_activities = runs.running_activities
    newest_activity = runs.newest_activity
    position = positions.position
    waiting = positions.waiting
    queue_length = positions.queue_length
    supervisor = leases.supervisor
    supervisors = leases.supervisors
    ready = leases.ready
    noted = audit.noted
    current_restrictions = restrictions.current_restrictions
    restrict = restrictions.restrict
    resume = restrictions.resume
    # supervisors
    heartbeat = leases.heartbeat
    end_lease = leases.end_lease
    silent_supervisors = leases.silent_supervisors
    take_over = leases.take_over
    drop_abandoned = run_states.drop_abandoned
    order_all = turns.order_all
    another_owner_waits = turns.another_owner_waits
    first_pass_waits = turns.first_pass_waits
    claim = claims.claim
    devices_of_results = runs.devices_of_results
    add_device_seconds = claims.add_device_seconds
    is_paused = restrictions.is_paused
    cancel_requested = run_states.cancel_requested
    set_current = claims.set_current
    add_result = claims.add_result
    add_observation = claims.add_observation
    finish = claims.finish
    set_summary = listing.set_summary
    purge_deleted = prune.purge_deleted
    release = claims.release

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
        InvalidInput: `url` names no database.
        StoreUnavailable: it cannot be used now; says why.
    """
    try:
        engine = connect(database_url(url))
    except (ArgumentError, NoSuchModuleError, ImportError, OSError) as error:
        raise _unusable(url, error) from error
    try:
        upgrade(engine)
    except BaseException as error:
        engine.dispose()
        if isinstance(error, DBAPIError | sqlite3.Error):
            raise unavailable(error) from error
        if isinstance(error, OSError):
            raise _unusable(url, error) from error
        raise
    return Store(engine, clock)


def _unusable(url: str | None, error: Exception) -> InvalidInput:
    accepted = f"one that can be opened and written ({str(error).splitlines()[0]}); see GPUEXPLORE_HOME"
    return InvalidInput.of("database", "GPUEXPLORE_DATABASE_URL" if url_is_given(url) else "file", accepted)
