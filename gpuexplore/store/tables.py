"""The five tables, as SQLAlchemy knows them; `migrations/` creates exactly these.

Times are UTC in ISO 8601 with microseconds: of one width, so that they sort as text.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Enum,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from gpuexplore.model import RunState

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

RUN_STATE = Enum(
    RunState, native_enum=False, length=16, values_callable=lambda states: [state.value for state in states]
)

RUNS = Table(
    "runs",
    METADATA,
    Column("number", Integer, primary_key=True),  # the order of submission
    Column("id", String(16), nullable=False),  # what a link carries: not to be guessed
    Column("owner", String(64), nullable=False),
    Column("experiment", JSON, nullable=False),
    Column("total", Integer, nullable=False),
    Column("state", RUN_STATE, nullable=False),
    Column("attempt", Integer, nullable=False, default=0),  # fences the writes of an attempt that was given up
    Column("supervisor", String(255)),
    Column("current", Integer),  # index of the case being measured
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("reason", Text),
    Column("created_utc", String(32), nullable=False),
    Column("started_utc", String(32)),
    Column("finished_utc", String(32)),
    UniqueConstraint("id"),
    Index(None, "state", "number"),
    Index(None, "owner", "started_utc"),
)

RESULTS = Table(
    "results",
    METADATA,
    Column("number", Integer, primary_key=True),  # the order of arrival
    Column("run_id", String(16), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("case_index", Integer, nullable=False),
    Column("payload", JSON, nullable=False),
    UniqueConstraint("run_id", "case_index"),
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
    Column("name", String(255), primary_key=True),
    Column("pid", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("devices", JSON, nullable=False),
    Column("beat_utc", String(32), nullable=False),
)
