"""A supervisor's lease, from its first beat to what becomes of its runs: who measures on what, and was heard of when.

A lease is a row that a supervisor writes anew every second (`jobs.heartbeat`), with its devices and what it does. Times
are by the database's own clock, the only one that all hosts share. Who was heard of in the last FRESH_S seconds is
alive: pages show its devices, and expected starts count on them. Who is silent for LEASE_S has lost its lease: what it
was measuring may be taken over. A supervisor that ends in good order ends its lease, too.

Who is alive looks for the runs of the dead: of supervisors whose lease is gone, of those that shared its locks,
which it holds now, and of those that were silent at two looks. These runs wait again, are cancelled where that was
asked for, or fail where they ended MOST_LOST supervisors. Their attempt counts on at the next claim, and so fences off
what a supervisor writes that was not dead after all (`claims`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, Update, and_, delete, func, select, update
from sqlalchemy import case as choose

from gpuexplore.core import CANCELLED_BY_OWNER, Device, RunState, StoreUnavailable, decode, encode
from gpuexplore.store.database import Database, epoch_s, upsert
from gpuexplore.store.run_states import changeable, settle
from gpuexplore.store.tables import RUNS, SUPERVISORS

SupervisorState = Literal["warming", "ready", "measuring"]
FRESH_S = 5.0  # five beats: who reported itself since is alive
LEASE_S = 30.0  # a run of who is silent for longer may be taken over
MOST_LOST = 3


@dataclass(frozen=True, slots=True)
class Supervisor:
    """A process that measures, and what it last reported of itself.

    Attributes:
        name: unique: no other process, before or after, has it.
        host: of the machine, as its devices are named by.
        scope: processes with the same share the locks of one operating system.
        side_by_side: whether each of its devices is measured on by itself; otherwise all in turns.
        state: what it does.
        devices: that it has.
        age_s: seconds since it reported itself.
    """

    name: str
    host: str
    scope: str
    pid: int
    version: str
    side_by_side: bool = False
    state: SupervisorState = "warming"
    devices: tuple[Device, ...] = ()
    age_s: float = 0.0

    @property
    def alive(self) -> bool:
        """True if it has reported in the last seconds."""
        return abs(self.age_s) < FRESH_S

    @property
    def device_ids(self) -> frozenset[str]:
        """The names by which runs ask for its devices: `cuda:0` on any host, `lab1/cuda:0` on this one."""
        return names_of(self.host, (device.id for device in self.devices))


class Leases(Database):
    """Leases of supervisors, and what dead ones left."""

    def heartbeat(self, instance: Supervisor, *, state: SupervisorState, devices: Sequence[Device]) -> None:
        """Renew the lease of `instance`."""
        row = {
            "name": instance.name,
            "host": instance.host,
            "scope": instance.scope,
            "pid": instance.pid,
            "version": instance.version,
            "side_by_side": instance.side_by_side,
            "state": state,
            "devices": encode(devices),
            "beat_epoch_s": epoch_s(),
        }
        with self.writing() as connection:
            upsert(connection, SUPERVISORS, row)

    def end_lease(self, instance: Supervisor) -> None:
        """Forget `instance`, which ends in good order, and those that were silent for an hour."""
        silent = epoch_s() - SUPERVISORS.c.beat_epoch_s > 3600.0
        with self.writing() as connection:
            connection.execute(delete(SUPERVISORS).where((SUPERVISORS.c.name == instance.name) | silent))

    def supervisors(self) -> tuple[Supervisor, ...]:
        """Return the supervisors heard of within a lease, the one heard of last first."""
        with self.reading() as connection:
            return leased(connection)

    def supervisor(self) -> Supervisor | None:
        """Return the supervisor heard of last; None when there is none within a lease."""
        return next(iter(self.supervisors()), None)

    def ready(self) -> None:
        """Return when runs that are submitted now will be measured.

        Raises:
            StoreUnavailable: the database cannot be read or written, or no supervisor is alive; says which.
        """
        is_alive = any(supervisor.alive for supervisor in self.supervisors())
        self.check(writing=not is_alive)  # a supervisor that cannot write is silent, too
        if not is_alive:
            raise StoreUnavailable(f"No supervisor has reported in the last {FRESH_S:g} seconds")

    def silent_supervisors(self) -> frozenset[str]:
        """Return the supervisors of running runs whose lease has expired by the database's clock."""
        leased = select(SUPERVISORS.c.name).where(reported_within(LEASE_S))
        with self.reading() as connection:
            found = connection.scalars(
                select(RUNS.c.supervisor)
                .where(RUNS.c.state == RunState.RUNNING, RUNS.c.supervisor.not_in(leased))
                .distinct()
            )
            return frozenset(name for name in found if name is not None)

    def take_over(self, instance: Supervisor, silent: Collection[str] = ()) -> int:
        """Queue again what dead supervisors left running; return how many runs that were.

        A run that was to be cancelled is cancelled, and one that ended its supervisor too often fails.

        Args:
            instance: the caller, which holds the lock of its scope: others that had that lock are dead.
            silent: names whose lease has expired; not taken on trust, but once more compared with the lease.
        """
        scope = select(SUPERVISORS.c.name).where(SUPERVISORS.c.scope == instance.scope)
        leased = select(SUPERVISORS.c.name).where(reported_within(LEASE_S))
        known = select(SUPERVISORS.c.name)
        dead = (
            RUNS.c.supervisor.in_(scope)
            | RUNS.c.supervisor.not_in(known)
            | and_(RUNS.c.supervisor.in_(silent), RUNS.c.supervisor.not_in(leased))
        )
        with self.writing() as connection:
            count = connection.execute(self._requeue(dead & (RUNS.c.supervisor != instance.name))).rowcount
            settle(connection)
            return count

    def _requeue(self, dead: ColumnElement[bool]) -> Update:
        """Return the statement that queues the running runs of the dead again, with one more supervisor lost."""
        give_up = RUNS.c.lost + 1 >= MOST_LOST
        ends = RUNS.c.cancel_requested | give_up
        return (
            update(RUNS)
            .where(
                changeable("supervisor", RunState.RUNNING, RunState.CANCELLED, RunState.FAILED, RunState.QUEUED), dead
            )
            .values(
                state=choose(
                    (RUNS.c.cancel_requested, RunState.CANCELLED), (give_up, RunState.FAILED), else_=RunState.QUEUED
                ),
                reason=choose(
                    (RUNS.c.cancel_requested, func.coalesce(RUNS.c.reason, CANCELLED_BY_OWNER)),
                    (give_up, f"the measuring process ended {MOST_LOST} times during this run"),
                ),
                finished_utc=choose((ends, self.now())),
                lost=RUNS.c.lost + 1,
                current=None,
            )
        )


def leased(connection: Connection) -> tuple[Supervisor, ...]:
    """Return the supervisors heard of within a lease, the one heard of last first."""
    age_s = (epoch_s() - SUPERVISORS.c.beat_epoch_s).label("age_s")
    rows = connection.execute(select(SUPERVISORS, age_s).where(reported_within(LEASE_S)).order_by(age_s))
    return tuple(
        Supervisor(
            name=row.name,
            host=row.host,
            scope=row.scope,
            pid=row.pid,
            version=row.version,
            side_by_side=row.side_by_side,
            state=row.state,
            devices=tuple(decode(Device, device) for device in row.devices),
            age_s=row.age_s,
        )
        for row in rows
    )


def names_of(host: str, device_ids: Iterable[str]) -> frozenset[str]:
    """Return the names by which runs ask for the devices of a host: `cuda:0` on any host, `lab1/cuda:0` on this one."""
    ids = frozenset(device_ids)
    return ids | {f"{host}/{device_id}" for device_id in ids}


def reported_within(seconds: float) -> ColumnElement[bool]:
    """Return the condition that a supervisor was heard of within FRESH_S or LEASE_S, on whichever side of now."""
    return epoch_s().between(SUPERVISORS.c.beat_epoch_s - seconds, SUPERVISORS.c.beat_epoch_s + seconds)
