"""Schema changes of version 0.2.0: the queue's order, activities, answers, rooms, names of runs, and an audit.

What 0.1.0 stored with every result moves to a table of its own, and runs get the title that they would get today; what
cannot be read stays as it is. Columns are added in place: a table made anew would take its rows' dependents along, for
`results` goes with `runs`. What users entered for a device is found by the device's key, which is its name in old rows.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from gpuexplore.store.tolerant_decode import digest_of, row_of, take_out

revision = "0014"
down_revision = "0002"
branch_labels = None
depends_on = None

BATCH = 500
LONGEST_TITLE, LONGEST_WORDS = 120, 500


def upgrade() -> None:
    """Add tables and columns, move the environments, and name the runs."""
    for table in ("own_peaks", "own_bandwidths"):
        op.execute(f"ALTER TABLE {table} RENAME COLUMN device_name TO device_key")
    _create_tables_of_devices()
    _create_tables_of_activities()
    _create_tables_of_rooms()
    _extend_runs()
    _extend_results()
    _recreate_supervisors()
    _move_environments(op.get_bind())
    _name_runs(op.get_bind())
    _create_indexes_of_runs()


def _create_tables_of_devices() -> None:
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
    op.create_table(
        "device_use",
        sa.Column("devices", sa.String(1000), nullable=False),
        sa.Column("device_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("devices", name="pk_device_use"),
    )
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at_utc", sa.String(32), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("object", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_at_utc", "audit", ["at_utc"])
    op.create_table(
        "device_holds",
        sa.Column("device", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("until_utc", sa.String(32)),
        sa.PrimaryKeyConstraint("device", name="pk_device_holds"),
    )


def _create_tables_of_activities() -> None:
    op.create_table(
        "observations",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(16), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON()),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_observations_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name="pk_observations"),
    )
    op.create_index("ix_observations_run_id_number", "observations", ["run_id", "number"])
    op.create_table(
        "answers",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("lesson", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(16), nullable=False),
        sa.Column("step", sa.String(1), nullable=False),
        sa.Column("guesses", sa.JSON(), nullable=False),
        sa.Column("runs", sa.JSON(), nullable=False),
        sa.Column("outcomes", sa.JSON()),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_answers"),
    )
    op.create_index("ix_answers_owner_lesson_step_number", "answers", ["owner", "lesson", "step", "number"])
    op.create_index("ix_answers_lesson_digest_created_utc", "answers", ["lesson", "digest", "created_utc"])


def _create_tables_of_rooms() -> None:
    op.create_table(
        "rooms",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(6), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.String(64), nullable=False),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.Column("ends_utc", sa.String(32), nullable=False),
        sa.Column("closed_utc", sa.String(32)),
        sa.Column("message", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("link", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("names_shown", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("weight", sa.Integer(), nullable=False, server_default=sa.text("1")),
        sa.PrimaryKeyConstraint("number", name="pk_rooms"),
        sa.UniqueConstraint("code", name="uq_rooms_code"),
    )
    op.create_table(
        "room_leaders",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("room", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "room", name="pk_room_leaders"),
        sa.ForeignKeyConstraint(["room"], ["rooms.number"], name="fk_room_leaders_room_rooms", ondelete="CASCADE"),
    )
    op.create_index("ix_room_leaders_room", "room_leaders", ["room"])
    op.create_table(
        "participants",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("room", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.String(200), nullable=False),
        sa.Column("joined_utc", sa.String(32), nullable=False),
        sa.Column("seen_epoch_s", sa.Float(), nullable=False),
        sa.Column("removed_utc", sa.String(32)),
        sa.PrimaryKeyConstraint("number", name="pk_participants"),
        sa.ForeignKeyConstraint(["room"], ["rooms.number"], name="fk_participants_room_rooms", ondelete="CASCADE"),
        sa.UniqueConstraint("room", "owner", name="uq_participants_room_owner"),
        sa.UniqueConstraint("room", "name_key", name="uq_participants_room_name_key"),
    )
    op.create_index("ix_participants_owner", "participants", ["owner"])
    op.create_table(
        "room_tasks",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("room", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.Column("revealed", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("frozen_utc", sa.String(32)),
        sa.Column("hidden", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("ends_epoch_s", sa.Float()),
        sa.PrimaryKeyConstraint("number", name="pk_room_tasks"),
        sa.ForeignKeyConstraint(["room"], ["rooms.number"], name="fk_room_tasks_room_rooms", ondelete="CASCADE"),
    )
    op.create_index("ix_room_tasks_room", "room_tasks", ["room"])
    op.create_table(
        "room_guesses",
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("participant", sa.Integer(), nullable=False),
        sa.Column("guess", sa.Float(), nullable=False),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("task", "participant", name="pk_room_guesses"),
        sa.ForeignKeyConstraint(
            ["task"], ["room_tasks.number"], name="fk_room_guesses_task_room_tasks", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["participant"],
            ["participants.number"],
            name="fk_room_guesses_participant_participants",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_room_guesses_participant", "room_guesses", ["participant"])


def _extend_runs() -> None:
    """Add columns and tables; runs that wait are taken to cost a minute."""
    for column in (
        sa.Column("kind", sa.String(32), nullable=False, server_default="experiment"),
        sa.Column("devices", sa.String(1000), nullable=False, server_default="cpu"),
        sa.Column("address", sa.String(64)),
        sa.Column("estimated_s", sa.Float(), nullable=False, server_default="60"),
        sa.Column("device_s", sa.Float(), nullable=False, server_default="0"),
        sa.Column("turn_s", sa.Float(), nullable=False, server_default="0"),
        sa.Column("lost", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("operation", sa.String(64)),
        sa.Column("title", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("note", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("device_names", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("origin", sa.Text()),
        sa.Column("summary", sa.JSON()),
        sa.Column("words", sa.String(500), nullable=False, server_default=sa.text("''")),
        sa.Column("deleted_utc", sa.String(32)),
    ):
        op.add_column("runs", column)
    op.create_table(
        "run_tags",
        sa.Column("tag", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tag", "number", name="pk_run_tags"),
        sa.ForeignKeyConstraint(["number"], ["runs.number"], name="fk_run_tags_number_runs", ondelete="CASCADE"),
    )
    op.create_index("ix_run_tags_number", "run_tags", ["number"])
    op.create_table(
        "run_askers",
        sa.Column("run_id", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("asked_utc", sa.String(32), nullable=False),
        sa.Column("turn_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "owner", name="pk_run_askers"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_askers_run_id_runs", ondelete="CASCADE"),
    )
    op.create_index("ix_run_askers_owner", "run_askers", ["owner"])


def _extend_results() -> None:
    """Add columns; whatever was measured before is final."""
    op.add_column("results", sa.Column("environment", sa.String(32)))
    op.add_column("results", sa.Column("provisional", sa.Boolean(), nullable=False, server_default=sa.false()))
    provisional = sa.text("provisional")
    op.create_index(
        "ix_results_provisional", "results", ["run_id"], sqlite_where=provisional, postgresql_where=provisional
    )


def _recreate_supervisors() -> None:
    """Make the table anew: what it holds is a minute old at most."""
    op.drop_table("supervisors")
    op.create_table(
        "supervisors",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("scope", sa.String(255), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("side_by_side", sa.Boolean(), nullable=False),
        sa.Column("beat_epoch_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_supervisors"),
    )


def _create_indexes_of_runs() -> None:
    for index in ("ix_runs_state_number", "ix_runs_owner_started_utc"):
        op.drop_index(index, "runs")
    by_turn = ["state", "devices", "turn_s", "number", "estimated_s", "device_s"]
    op.create_index("ix_runs_state_devices_turn_s_number_estimated_s_device_s", "runs", by_turn)
    op.create_index("ix_runs_owner_state_number", "runs", ["owner", "state", "number"])
    op.create_index("ix_runs_owner_number", "runs", ["owner", "number"])
    op.create_index("ix_runs_operation_number", "runs", ["operation", "number"])
    op.create_index("ix_runs_listed", "runs", ["number", "kind", "deleted_utc", "owner", "operation", "words"])
    waits = sa.text("state = 'queued' AND devices LIKE '%,%'")
    op.create_index(
        "ix_runs_waiting_for_several", "runs", ["state", "devices"], sqlite_where=waits, postgresql_where=waits
    )


def _move_environments(connection: sa.Connection) -> None:
    results = sa.table("results", sa.column("number"), sa.column("payload", sa.JSON()), sa.column("environment"))
    names = ("digest", "device_name", "spec_key")
    environments = sa.table("environments", *map(sa.column, names), sa.column("payload", sa.JSON()))
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


def _name_runs(connection: sa.Connection) -> None:
    """Set what a list shows of each run, and the devices that it asks for."""
    new = ("devices", "operation", "title", "device_names", "words")
    runs = sa.table("runs", *map(sa.column, ("number", "id", *new)), sa.column("experiment", sa.JSON()))
    wanted = sa.select(runs.c.number, runs.c.id, runs.c.experiment).order_by(runs.c.number).limit(BATCH)
    named = sa.update(runs).where(runs.c.number == sa.bindparam("at"))
    named = named.values(**{name: sa.bindparam(f"new_{name}") for name in new})
    devices = _devices(connection)
    last = 0
    while rows := connection.execute(wanted.where(runs.c.number > last)).all():
        found = []
        for row in rows:
            operation, title = _title(row.experiment)
            where = ", ".join(devices.get(row.id, ()))
            words = f"{title} {row.id} {where}".lower()[:LONGEST_WORDS]
            values = (_asked_devices(row.experiment), operation, title, where, words)
            found.append({"at": row.number, **{f"new_{name}": value for name, value in zip(new, values, strict=True)}})
        connection.execute(named, found)
        last = rows[-1].number


def _asked_devices(experiment: Any) -> str:
    devices = experiment.get("devices") if isinstance(experiment, dict) else None
    return ",".join(sorted(map(str, devices)))[:1000] if isinstance(devices, list) else "cpu"


def _devices(connection: sa.Connection) -> dict[str, list[str]]:
    """Return the names of the devices that each run was measured on, by its id."""
    results = sa.table("results", sa.column("run_id"), sa.column("environment"))
    environments = sa.table("environments", sa.column("digest"), sa.column("device_name"))
    names = {row.digest: row.device_name for row in connection.execute(sa.select(environments))}
    found: dict[str, list[str]] = {}
    for run_id, digest in connection.execute(sa.select(results.c.run_id, results.c.environment).distinct()):
        if (name := names.get(digest)) and name not in found.setdefault(run_id, []):
            found[run_id].append(name)
    return found


def _title(experiment: Any) -> tuple[str | None, str]:
    """Return operation and title of an experiment as it was encoded, as far as this can be read."""
    try:
        lengths = [[int(length) for _, length in shape["axes"]] for shape in experiment["shapes"]]
        operation = str(experiment["operation"])[:64]
        title = f"{operation} {_sizes(experiment['shapes'], lengths)}, {' '.join(map(str, experiment['dtypes']))}"
    except (KeyError, IndexError, TypeError, ValueError):
        return None, ""
    return operation, title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 2]} …"


def _sizes(shapes: list[Any], lengths: list[list[int]]) -> str:
    if all(len(set(each)) == 1 for each in lengths):
        ends = [lengths[0], lengths[-1]] if len(lengths) > 1 else lengths[:1]
        return " to ".join(str(each[0]) for each in ends)
    return (
        ",".join(f"{name}={length}" for name, length in shapes[0]["axes"])
        if len(shapes) == 1
        else f"{len(shapes)} shapes"
    )
