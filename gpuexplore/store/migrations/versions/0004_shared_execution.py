"""Turns by device seconds, leases by the database's clock, and each environment stored once.

What an earlier version stored with every result moves to a table of its own; a payload that this version does not
understand stays as it is. Columns are added and dropped in place: a table made anew would take its rows' dependents
along, for `results` goes with `runs`.
"""

import sqlalchemy as sa
from alembic import op

from gpuexplore.store.tolerant_decode import digest_of, row_of, take_out

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BATCH = 500
BY_TURN = "ix_runs_state_devices_turn_s_number_estimated_s_device_s"
BY_OWNER = "ix_runs_owner_state_number"
FOR_SEVERAL = "ix_runs_waiting_for_several"


def upgrade() -> None:
    """Add the tables and columns, then move the environments."""
    _create_tables()
    _extend_runs()
    op.add_column("results", sa.Column("environment", sa.String(32)))
    _recreate_supervisors(_new_columns())
    _move_environments(op.get_bind())


def downgrade() -> None:
    """Put the environments back into the results, and drop what was added."""
    _return_environments(op.get_bind())
    op.drop_column("results", "environment")
    op.drop_index(BY_TURN, "runs")
    op.drop_index(BY_OWNER, "runs")
    op.drop_index(FOR_SEVERAL, "runs")
    for column in ("devices", "address", "estimated_s", "device_s", "turn_s", "lost"):
        op.drop_column("runs", column)
    op.create_index("ix_runs_state_number", "runs", ["state", "number"])
    op.create_index("ix_runs_owner_started_utc", "runs", ["owner", "started_utc"])
    for table in ("owners", "device_seconds", "environments"):
        op.drop_table(table)
    _recreate_supervisors([sa.Column("beat_utc", sa.String(32), nullable=False)])


def _create_tables() -> None:
    op.create_table(
        "environments",
        sa.Column("digest", sa.String(32), nullable=False),
        sa.Column("device_name", sa.String(255), nullable=False),
        sa.Column("spec_key", sa.String(255)),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_environments"),
    )
    op.create_table(
        "device_seconds",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("minute", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "minute", name="pk_device_seconds"),
    )
    op.create_table(
        "owners",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("seen_epoch_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_owners"),
    )


def _extend_runs() -> None:
    """Add columns; runs that wait name the devices of their experiment, and their cost is taken to be a minute."""
    for index in ("ix_runs_state_number", "ix_runs_owner_started_utc"):
        op.drop_index(index, "runs")
    for column in (
        sa.Column("devices", sa.String(1000), nullable=False, server_default="cpu"),
        sa.Column("address", sa.String(64)),
        sa.Column("estimated_s", sa.Float(), nullable=False, server_default="60"),
        sa.Column("device_s", sa.Float(), nullable=False, server_default="0"),
        sa.Column("turn_s", sa.Float(), nullable=False, server_default="0"),
        sa.Column("lost", sa.Integer(), nullable=False, server_default="0"),
    ):
        op.add_column("runs", column)
    _name_devices(op.get_bind())
    columns = ["state", "devices", "turn_s", "number", "estimated_s", "device_s"]
    op.create_index(BY_TURN, "runs", columns)
    op.create_index(BY_OWNER, "runs", ["owner", "state", "number"])
    waits = sa.text("state = 'queued' AND devices LIKE '%,%'")
    op.create_index(FOR_SEVERAL, "runs", ["state", "devices"], sqlite_where=waits, postgresql_where=waits)


def _name_devices(connection: sa.Connection) -> None:
    runs = sa.table("runs", sa.column("number"), sa.column("experiment", sa.JSON()), sa.column("devices"))
    for number, experiment in connection.execute(sa.select(runs.c.number, runs.c.experiment)).all():
        devices = experiment.get("devices") if isinstance(experiment, dict) else None
        if isinstance(devices, list):
            named = ",".join(sorted(map(str, devices)))[:1000]
            connection.execute(sa.update(runs).where(runs.c.number == number).values(devices=named))


def _new_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("scope", sa.String(255), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("side_by_side", sa.Boolean(), nullable=False),
        sa.Column("beat_epoch_s", sa.Float(), nullable=False),
    ]


def _recreate_supervisors(columns: list[sa.Column[object]]) -> None:
    """Make the table anew: what it holds is a minute old at most."""
    op.drop_table("supervisors")
    op.create_table(
        "supervisors",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("name", name="pk_supervisors"),
    )


def _tables() -> tuple[sa.TableClause, sa.TableClause]:
    results = sa.table("results", sa.column("number"), sa.column("payload", sa.JSON()), sa.column("environment"))
    environments = sa.table(
        "environments",
        sa.column("digest"),
        sa.column("device_name"),
        sa.column("spec_key"),
        sa.column("payload", sa.JSON()),
    )
    return results, environments


def _move_environments(connection: sa.Connection) -> None:
    results, environments = _tables()
    known: set[str] = set()
    last = 0
    while rows := connection.execute(
        sa.select(results.c.number, results.c.payload)
        .where(results.c.number > last)
        .order_by(results.c.number)
        .limit(BATCH)
    ).all():
        for number, payload in rows:
            rest, environment = take_out(payload)
            if environment is None:
                continue
            digest = digest_of(environment)
            if digest not in known:
                connection.execute(sa.insert(environments).values(**row_of(digest, environment)))
                known.add(digest)
            moved = sa.update(results).where(results.c.number == number)
            connection.execute(moved.values(payload=rest, environment=digest))
        last = rows[-1].number


def _return_environments(connection: sa.Connection) -> None:
    results, environments = _tables()
    joined = sa.select(results.c.number, results.c.payload, environments.c.payload.label("shared"))
    rows = connection.execute(joined.join(environments, environments.c.digest == results.c.environment)).all()
    for number, payload, shared in rows:
        whole = payload | {"environment": shared | payload["environment"]}
        connection.execute(sa.update(results).where(results.c.number == number).values(payload=whole))
