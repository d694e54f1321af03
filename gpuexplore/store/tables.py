"""The tables, as SQLAlchemy knows them; `migrations/` creates exactly these.

Times named `_utc` are UTC in ISO 8601 with microseconds, of one width, so that they sort as text. Times named
`_epoch_s` are seconds since 1970 by the database's own clock, the only one that all hosts share.
"""

import re
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Dialect,
    Enum,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)

from gpuexplore.core.model import RunState

REPLACEMENT = "\ufffd"
# PostgreSQL refuses NUL, and no encoding has half of a surrogate pair
_REFUSED = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` with signs that no database takes replaced by ones that show it."""
    return _REFUSED.sub(REPLACEMENT, text)


class _StorableText(TypeDecorator[str]):
    """A column of text from anywhere: an implementation's error, a browser."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what is stored."""
        return None if value is None else storable(value)


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


EXPERIMENT = "experiment"
PROVISIONAL = "provisional"  # the index has the few results that are
WAITS_FOR_SEVERAL = "state = 'queued' AND devices LIKE '%,%'"  # a run that waits and needs several devices

RUNS = Table(
    "runs",
    METADATA,
    Column("number", Integer, primary_key=True),  # the order of submission
    Column("id", String(16), nullable=False),  # what a link carries: not to be guessed
    Column("owner", String(64), nullable=False),
    Column("kind", String(32), nullable=False, server_default=EXPERIMENT),  # of what `experiment` is: else an activity
    Column("experiment", JSON, nullable=False),
    Column("total", Integer, nullable=False),
    Column(
        "state",
        Enum(RunState, native_enum=False, length=16, values_callable=lambda states: [state.value for state in states]),
        nullable=False,
    ),
    Column(
        "devices", String(1000), nullable=False, server_default="cpu"
    ),  # sorted and joined by commas: who has them all may claim the run
    Column("address", String(64)),  # where it was submitted from
    Column("estimated_s", Float, nullable=False, server_default="60"),  # device seconds, before it is measured
    Column("device_s", Float, nullable=False, server_default="0"),  # device seconds so far
    Column("turn_s", Float, nullable=False, server_default="0"),  # the queue's order, see `turns`
    Column("attempt", Integer, nullable=False, default=0),  # fences the writes of an attempt that was given up
    Column("lost", Integer, nullable=False, server_default="0"),  # supervisors that died while they measured it
    Column("supervisor", String(255)),
    Column("current", Integer),  # index of the case being measured
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("reason", _StorableText),
    Column("created_utc", String(32), nullable=False),
    Column("started_utc", String(32)),
    Column("finished_utc", String(32)),
    Column("operation", String(64)),  # of an experiment, which lists are filtered by
    Column("title", _StorableText, nullable=False, server_default=text("''")),
    Column("note", _StorableText, nullable=False, server_default=text("''")),
    Column("device_names", _StorableText, nullable=False, server_default=text("''")),  # of those it was measured on
    Column("origin", _StorableText),  # of one that was imported; NULL: measured by this server or on its machine
    Column("summary", JSON),  # what a list says of it; NULL until it has ended and was worked out
    Column(
        "words", String(500), nullable=False, server_default=text("''")
    ),  # what a search looks through, in lower case
    Column("deleted_utc", String(32)),
    UniqueConstraint("id"),
    Index(None, "state", "devices", "turn_s", "number", "estimated_s", "device_s"),
    Index(None, "owner", "state", "number"),
    Index(None, "owner", "number"),
    Index(None, "operation", "number"),
    Index("ix_runs_listed", "number", "kind", "deleted_utc", "owner", "operation", "words"),
    Index(
        "ix_runs_waiting_for_several",
        "state",
        "devices",
        sqlite_where=text(WAITS_FOR_SEVERAL),
        postgresql_where=text(WAITS_FOR_SEVERAL),
    ),
)

RUN_TAGS = Table(
    "run_tags",
    METADATA,
    Column("tag", String(64), nullable=False),
    Column("number", Integer, ForeignKey("runs.number", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("tag", "number"),
    Index(None, "number"),
)

RUN_ASKERS = Table(
    "run_askers",
    METADATA,
    Column("run_id", String(16), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("owner", String(64), nullable=False),  # who asked for the same while it waited or went on, besides its own
    Column("asked_utc", String(32), nullable=False),
    Column("turn_s", Float, nullable=False),  # what a run of their own would have had then, see `turns`
    PrimaryKeyConstraint("run_id", "owner"),
    Index(None, "owner"),
)

ENVIRONMENTS = Table(
    "environments",
    METADATA,
    Column("digest", String(32), primary_key=True),  # of the payload: many results share one
    Column("device_name", String(255), nullable=False),
    Column("spec_key", String(255)),
    Column("payload", JSON, nullable=False),
)

RESULTS = Table(
    "results",
    METADATA,
    Column("number", Integer, primary_key=True),  # the order of arrival
    Column("run_id", String(16), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("case_index", Integer, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("environment", String(32)),  # digest
    Column("provisional", Boolean, nullable=False, server_default=false()),  # of a first pass: a final one replaces it
    UniqueConstraint("run_id", "case_index"),
    Index(
        "ix_results_provisional",
        "run_id",
        sqlite_where=text(PROVISIONAL),
        postgresql_where=text(PROVISIONAL),
    ),
)

OBSERVATIONS = Table(
    "observations",
    METADATA,
    Column("number", Integer, primary_key=True),  # the order of arrival
    Column("run_id", String(16), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("versions", JSON),  # of the software, by name; unknown in what was observed before they were kept
    Index(None, "run_id", "number"),
)

OWN_PEAKS = Table(
    "own_peaks",
    METADATA,
    Column("owner", String(64), nullable=False),
    Column("device_key", String(255), nullable=False),  # what versions before 0.2 wrote is the device's name
    Column("dtype", String(16), nullable=False),
    Column("unit", String(16), nullable=False),
    Column("payload", JSON, nullable=False),
    PrimaryKeyConstraint("owner", "device_key", "dtype", "unit"),
)

OWN_BANDWIDTHS = Table(
    "own_bandwidths",
    METADATA,
    Column("owner", String(64), nullable=False),
    Column("device_key", String(255), nullable=False),  # what versions before 0.2 wrote is the device's name
    Column("payload", JSON, nullable=False),
    PrimaryKeyConstraint("owner", "device_key"),
)

SUPERVISORS = Table(
    "supervisors",
    METADATA,
    Column("name", String(255), primary_key=True),  # host, scope of its locks, and a random part: one per process
    Column("host", String(255), nullable=False),
    Column("scope", String(255), nullable=False),  # who shares it shares the locks of the operating system
    Column("pid", Integer, nullable=False),
    Column("version", String(64), nullable=False),
    Column("side_by_side", Boolean, nullable=False),  # each device measured on by itself, or all in turns
    Column("state", String(16), nullable=False),
    Column("devices", JSON, nullable=False),
    Column("beat_epoch_s", Float, nullable=False),
)

DEVICE_SECONDS = Table(
    "device_seconds",
    METADATA,
    Column("owner", String(64), nullable=False),
    Column("minute", Integer, nullable=False),  # since 1970
    Column("device_s", Float, nullable=False),
    PrimaryKeyConstraint("owner", "minute"),
)

DEVICE_USE = Table(
    "device_use",
    METADATA,
    Column("devices", String(1000), primary_key=True),  # as runs ask for them, sorted and joined by commas
    Column("device_s", Float, nullable=False),  # since the table is there, of runs that were deleted too
)

DEVICE_HOLDS = Table(
    "device_holds",
    METADATA,
    Column("device", String(255), primary_key=True),  # as runs ask for it
    Column("kind", String(16), nullable=False),
    Column("reason", _StorableText, nullable=False),
    Column("owner", String(64)),  # whose runs a reserved one measures
    Column("until_utc", String(32)),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("number", Integer, primary_key=True),  # the order of what was done
    Column("at_utc", String(32), nullable=False),
    Column("who", _StorableText, nullable=False),
    Column("address", String(64)),
    Column("action", String(32), nullable=False),
    Column("object", String(64), nullable=False),
    Index(None, "at_utc"),
)

ANSWERS = Table(
    "answers",
    METADATA,
    Column("number", Integer, primary_key=True),  # the last of a step is the one that counts
    Column("owner", String(64), nullable=False),
    Column("lesson", String(100), nullable=False),
    Column("digest", String(16), nullable=False),  # of its text: answers belong to one version of a lesson
    Column("step", String(1), nullable=False),
    Column("guesses", JSON, nullable=False),  # by the guess's id; null for no idea
    Column("runs", JSON, nullable=False),  # ids, in the order of what the step measures; null for none
    Column("outcomes", JSON),  # in the order of the checks, once they are judged
    Column("created_utc", String(32), nullable=False),
    Index(None, "owner", "lesson", "step", "number"),
    Index(None, "lesson", "digest", "created_utc"),
)

OWNERS = Table(
    "owners",
    METADATA,
    Column("owner", String(64), primary_key=True),
    Column("seen_epoch_s", Float, nullable=False),
)

ROOMS = Table(
    "rooms",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("code", String(6), nullable=False),
    Column("title", _StorableText, nullable=False),
    Column("key_digest", String(64), nullable=False),  # SHA-256 of what the leader's link carries
    Column("created_utc", String(32), nullable=False),
    Column("ends_utc", String(32), nullable=False),
    Column("closed_utc", String(32)),
    Column(
        "message", _StorableText, nullable=False, server_default=text("''")
    ),  # of its leader, on the pages of all participants
    Column("link", _StorableText, nullable=False, server_default=text("''")),  # a page of ours, below the message
    Column("names_shown", Boolean, nullable=False, server_default=false()),  # on the wall
    Column("weight", Integer, nullable=False, server_default=text("1")),  # of the turns of those in it, see `turns`
    UniqueConstraint("code"),
)

ROOM_LEADERS = Table(
    "room_leaders",
    METADATA,
    Column("owner", String(64), nullable=False),  # who opened it, and who came by the leader's link
    Column("room", Integer, ForeignKey("rooms.number", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("owner", "room"),
    Index(None, "room"),
)

PARTICIPANTS = Table(
    "participants",
    METADATA,
    Column("number", Integer, primary_key=True),  # what pages name people by: their owner is a secret of their browser
    Column("room", Integer, ForeignKey("rooms.number", ondelete="CASCADE"), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("name", _StorableText, nullable=False),
    Column("name_key", String(200), nullable=False),  # the same for names that people would take for one
    Column("joined_utc", String(32), nullable=False),
    Column("seen_epoch_s", Float, nullable=False),
    Column("removed_utc", String(32)),
    UniqueConstraint("room", "owner"),
    UniqueConstraint("room", "name_key"),
    Index(None, "owner"),
)

ROOM_TASKS = Table(
    "room_tasks",
    METADATA,
    Column("number", Integer, primary_key=True),  # the newest of a room is the one that it is at
    Column("room", Integer, ForeignKey("rooms.number", ondelete="CASCADE"), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("settings", JSON, nullable=False),  # of the kind
    Column("created_utc", String(32), nullable=False),
    Column("revealed", Boolean, nullable=False, server_default=false()),
    Column("frozen_utc", String(32)),  # what is answered later does not count
    Column("hidden", Boolean, nullable=False, server_default=false()),  # off the wall
    Column("ends_epoch_s", Float),  # when its timer is over
    Index(None, "room"),
)

ROOM_GUESSES = Table(
    "room_guesses",
    METADATA,
    Column("task", Integer, ForeignKey("room_tasks.number", ondelete="CASCADE"), nullable=False),
    Column("participant", Integer, ForeignKey("participants.number", ondelete="CASCADE"), nullable=False),
    Column("guess", Float, nullable=False),  # SI base units
    Column("created_utc", String(32), nullable=False),
    PrimaryKeyConstraint("task", "participant"),
    Index(None, "participant"),
)
