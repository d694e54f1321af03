"""Lists of runs, newest first, a page at a time: what is in them, and what their owners write on them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, insert, select, true, union_all, update

from gpuexplore.core import (
    LONGEST_NOTE,
    LONGEST_TITLE,
    InvalidInput,
    NotFound,
    RunState,
    RunSummary,
    checked,
    checked_tags,
    decode,
    default_title,
    encode,
    require,
)
from gpuexplore.store.database import Action, Database, note
from gpuexplore.store.run_states import ACTIVE, LISTED, askers_in, run_row, searched, was_asked_for_by
from gpuexplore.store.tables import ENVIRONMENTS, EXPERIMENT, RUN_TAGS, RUNS
from gpuexplore.store.tolerant_decode import DECODE_ERRORS, experiment_of

MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of a list of runs; None and empty match all.

    Attributes:
        owner: whose: what they submitted, or asked for while another's was measured.
        operation: by its name.
        device: words of its device's name.
        tag: one of theirs.
        text: words that title, tags, note, devices and id are searched for; each must be there.
    """

    owner: str | None = None
    operation: str | None = None
    device: str | None = None
    tag: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A line of a list; times are UTC in ISO 8601.

    Attributes:
        number: in the order of submission: the next page begins below it.
        devices: the ids it asked for.
        device_names: of those it was measured on, with commas between them; empty before it was.
        summary: None before it has ended, and where it was not worked out yet.
        origin: where it was measured, when not by this server or on its machine.
    """

    number: int
    id: str
    owner: str
    title: str
    note: str
    tags: tuple[str, ...]
    operation: str | None
    devices: tuple[str, ...]
    device_names: str
    state: RunState
    created_utc: str
    summary: RunSummary | None
    origin: str | None

    @property
    def active(self) -> bool:
        """True while the run is queued or measures."""
        return self.state in ACTIVE


@dataclass(frozen=True, slots=True)
class Description:
    """An owner's title, note and tags of a run; None leaves them unchanged.

    Attributes:
        title: empty for the default one.
        note: empty for none.
        tags: all that it has from now on, as a list or with commas between them.
    """

    title: str | None = None
    note: str | None = None
    tags: str | Iterable[str] | None = None


NAMES = tuple(field.name for field in fields(ListedRun) if field.name != "tags")  # of columns of RUNS


class RunLists(Database):
    """Lists of runs, and what owners write on them."""

    def listed(self, wanted: Wanted = Wanted(), *, before: int | None = None, limit: int = 50) -> tuple[ListedRun, ...]:
        """Return runs, newest first, without those that were deleted.

        Args:
            wanted: which.
            before: only runs submitted before the one of this number, which a list names: the next page.
            limit: of runs, MOST_LISTED at most.

        Raises:
            InvalidInput: a limit below 1 or above that.
        """
        require(1 <= limit <= MOST_LISTED, "limit", limit, f"1 to {MOST_LISTED}")
        # One condition a query: of two at once no index has the order.
        owner = wanted.owner
        whose: Sequence[ColumnElement[bool]] = (
            [true()] if owner is None else [RUNS.c.owner == owner, was_asked_for_by(owner)]
        )
        pages = [_page(wanted, condition, before, limit) for condition in whose]
        query = (
            select(*(RUNS.c[name] for name in NAMES))
            .where(RUNS.c.number.in_(union_all(*pages)))
            .order_by(RUNS.c.number.desc())
            .limit(limit)
        )
        with self.reading() as connection:
            rows = connection.execute(query).all()
            tags = _tags(connection, [row.number for row in rows])
        return tuple(_listed(row, tags.get(row.number, ())) for row in rows)

    def listed_run(self, run_id: str) -> ListedRun:
        """Return the line of one run, which a list would show.

        Raises:
            NotFound: no run has this id, or it was deleted.
        """
        with self.reading() as connection:
            row = run_row(connection, run_id)
            return _listed(row, _tags(connection, [row.number]).get(row.number, ()))

    def tags_in_use(self, owner: str | None = None, *, limit: int = 100) -> tuple[str, ...]:
        """Return the tags of the runs that a list shows, of `owner` or of all, in the order of the alphabet."""
        query = select(RUN_TAGS.c.tag).distinct().order_by(RUN_TAGS.c.tag).limit(limit)
        if owner is not None:
            query = query.join(RUNS, RUNS.c.number == RUN_TAGS.c.number).where(RUNS.c.owner == owner, *LISTED)
        with self.reading() as connection:
            return tuple(connection.scalars(query))

    def device_names(self, *, limit: int = 100) -> tuple[str, ...]:
        """Return the names of the devices that something was measured on, in the order of the alphabet."""
        query = select(ENVIRONMENTS.c.device_name).distinct().order_by(ENVIRONMENTS.c.device_name).limit(limit)
        with self.reading() as connection:
            return tuple(connection.scalars(query))

    def describe(self, run_id: str, owner: str, description: Description, *, admin: bool = False) -> ListedRun:
        """Change what a run's owner wrote on it; return its line of a list.

        Args:
            run_id: of the run.
            owner: who asks.
            description: what changes.
            admin: whether who asks may change those of all.

        Raises:
            NotFound: no run has this id, or it was deleted.
            InvalidInput: the run is another user's, or something is too long.
        """
        given = description
        values = {
            "title": None if given.title is None else checked("title", " ".join(given.title.split()), LONGEST_TITLE),
            "note": None if given.note is None else checked("note", given.note.strip(), LONGEST_NOTE),
        }
        tags = None if given.tags is None else checked_tags(given.tags)
        with self.writing(durable=True) as connection:
            row = run_row(connection, run_id)
            _check_own(row, owner, "change", admin=admin)
            if values["title"] == "":
                values["title"] = default_title(experiment_of(run_id, row.experiment))
            changes = {name: value for name, value in values.items() if value is not None}
            if tags is not None:
                connection.execute(delete(RUN_TAGS).where(RUN_TAGS.c.number == row.number))
            if tags:
                connection.execute(insert(RUN_TAGS), [{"tag": tag, "number": row.number} for tag in tags])
            if changes:
                connection.execute(update(RUNS).where(RUNS.c.number == row.number).values(**changes))
            described = connection.execute(select(RUNS).where(RUNS.c.number == row.number)).one()
            tags_now = _tags(connection, [row.number]).get(row.number, ())
            words = searched(described.title, *tags_now, row.id, described.device_names, described.note)
            connection.execute(update(RUNS).where(RUNS.c.number == row.number).values(words=words))
        return self.listed_run(run_id)

    def set_summary(self, run_id: str, summary: RunSummary) -> None:
        """Keep what a list says of a run that has ended."""
        with self.writing() as connection:
            connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(summary=encode(summary)))

    def delete_run(self, run_id: str, owner: str, *, admin: bool = False, address: str | None = None) -> None:
        """Take a run off every list and page; `restore_run` brings it back until it is purged.

        Args:
            run_id: of the run.
            owner: who asks.
            admin: whether who asks may delete those of all.
            address: where they ask from.

        Raises:
            NotFound: no run has this id.
            InvalidInput: the run is another user's too, or has not ended.
        """
        with self.writing(durable=True) as connection:
            row = run_row(connection, run_id)
            _check_own(row, owner, "delete", admin=admin)
            if not admin and (others := len(askers_in(connection, run_id))):
                raise InvalidInput(
                    f"run {run_id} is shared with {others} other users: only an administrator can delete it"
                )
            if row.state in ACTIVE:
                raise InvalidInput(f"run {run_id} has not ended: cancel it before you delete it")
            connection.execute(update(RUNS).where(RUNS.c.number == row.number).values(deleted_utc=self.now()))
            note(connection, self.now(), (Action.DELETED, owner, run_id), address)

    def restore_run(self, run_id: str, owner: str, *, admin: bool = False, address: str | None = None) -> None:
        """Bring back a run that was deleted, as `delete_run` asks for it; one that was not stays as it is.

        Raises:
            NotFound: no run has this id, or it was purged.
            InvalidInput: the run is another user's.
        """
        with self.writing(durable=True) as connection:
            row = run_row(connection, run_id, deleted=True)
            _check_own(row, owner, "restore", admin=admin)
            gone = RUNS.c.number == row.number, RUNS.c.deleted_utc.is_not(None)
            if connection.execute(update(RUNS).where(*gone).values(deleted_utc=None)).rowcount:
                note(connection, self.now(), (Action.RESTORED, owner, run_id), address)


def tags_of(connection: Connection, number: int) -> tuple[str, ...]:
    """Return the tags of the run of this number."""
    return _tags(connection, [number]).get(number, ())


def summary_of_row(payload: Any) -> RunSummary | None:
    """Return what a row says of its run; None where another version wrote what this one cannot read."""
    try:
        return None if payload is None else decode(RunSummary, payload)
    except DECODE_ERRORS:
        return None


def _page(wanted: Wanted, whose: ColumnElement[bool], before: int | None, limit: int) -> Select[Any]:
    """Return the query of the newest numbers that `whose` allows."""
    number = RUN_TAGS.c.number if wanted.tag else RUNS.c.number  # each with an index that has the order
    query = select(number.label("number"))
    if wanted.tag:
        query = query.join_from(RUN_TAGS, RUNS, RUNS.c.number == RUN_TAGS.c.number)
        query = query.where(RUN_TAGS.c.tag == wanted.tag.strip().lower())
    if wanted.operation:
        query = query.where(RUNS.c.operation == wanted.operation)
    words = f"{wanted.text} {wanted.device or ''}".lower().split()
    query = query.where(*LISTED, *(RUNS.c.words.contains(word, autoescape=True) for word in words), whose)
    if before is not None:
        query = query.where(number < before)
    return select(query.order_by(number.desc()).limit(limit).subquery().c.number)


def _tags(connection: Connection, numbers: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
    found: dict[int, list[str]] = defaultdict(list)
    query = select(RUN_TAGS.c.number, RUN_TAGS.c.tag).where(RUN_TAGS.c.number.in_(numbers)).order_by(RUN_TAGS.c.tag)
    for number, tag in connection.execute(query):
        found[number].append(tag)
    return {number: tuple(tags) for number, tags in found.items()}


def _listed(row: Row[Any], tags: tuple[str, ...]) -> ListedRun:
    given = {name: getattr(row, name) for name in NAMES}
    given |= {"devices": tuple(row.devices.split(",")), "state": RunState(row.state)}
    return ListedRun(**given | {"summary": summary_of_row(row.summary), "tags": tags})


def _check_own(row: Row[Any], owner: str, verb: str, *, admin: bool) -> None:
    if row.owner != owner and not admin:
        raise InvalidInput(f"run {row.id} belongs to another user: only its owner can {verb} it")
    if row.kind != EXPERIMENT:
        raise NotFound(f"{row.id!r} is an activity, not a run: it has no title")
