"""What a run is called, its note and tags, where it comes from, what a list says of it, and when it was deleted."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

BATCH = 1000
LONGEST_TITLE, LONGEST_WORDS = 120, 500
INDEXES = {
    "ix_runs_owner_number": ["owner", "number"],
    "ix_runs_operation_number": ["operation", "number"],
    "ix_runs_listed": ["number", "kind", "deleted_utc", "owner", "operation", "words"],
}


def upgrade() -> None:
    """Add the columns and the tags; runs get the title that they would get today."""
    for column in (
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
    _name_runs(op.get_bind())
    for name, columns in INDEXES.items():
        op.create_index(name, "runs", columns)


def downgrade() -> None:
    """Drop what was added, and the runs that earlier versions would show: deleted ones, and those of elsewhere."""
    op.execute("DELETE FROM results WHERE run_id IN (SELECT id FROM runs WHERE deleted_utc IS NOT NULL)")
    op.execute("DELETE FROM results WHERE run_id IN (SELECT id FROM runs WHERE origin IS NOT NULL)")
    op.drop_table("run_tags")
    op.execute("DELETE FROM runs WHERE deleted_utc IS NOT NULL OR origin IS NOT NULL")
    for name in INDEXES:
        op.drop_index(name, "runs")
    for column in ("operation", "title", "note", "device_names", "origin", "summary", "words", "deleted_utc"):
        op.drop_column("runs", column)


def _name_runs(connection: sa.Connection) -> None:
    names = ("number", "id", "kind", "operation", "title", "device_names", "words")
    runs = sa.table("runs", *map(sa.column, names), sa.column("experiment", sa.JSON()))
    wanted = sa.select(runs.c.number, runs.c.id, runs.c.experiment).where(runs.c.kind == "experiment")
    named = sa.update(runs).where(runs.c.number == sa.bindparam("at"))
    named = named.values(
        **{name: sa.bindparam(f"new_{name}") for name in ("operation", "title", "device_names", "words")}
    )
    devices = _devices(connection)
    last = 0
    while rows := connection.execute(wanted.where(runs.c.number > last).order_by(runs.c.number).limit(BATCH)).all():
        found = []
        for row in rows:
            operation, title = _title(row.experiment)
            where = ", ".join(devices.get(row.id, ()))
            words = f"{title} {row.id} {where}".lower()[:LONGEST_WORDS]
            values = {"operation": operation, "title": title, "device_names": where, "words": words}
            found.append({"at": row.number, **{f"new_{name}": value for name, value in values.items()}})
        connection.execute(named, found)
        last = rows[-1].number


def _devices(connection: sa.Connection) -> dict[str, list[str]]:
    """Return the names of the devices that each run was measured on, by its id."""
    results = sa.table("results", sa.column("run_id"), sa.column("environment"))
    environments = sa.table("environments", sa.column("digest"), sa.column("payload", sa.JSON()))
    names = {row.digest: _device_name(row.payload) for row in connection.execute(sa.select(environments))}
    found: dict[str, list[str]] = {}
    for run_id, digest in connection.execute(sa.select(results.c.run_id, results.c.environment).distinct()):
        name = names.get(digest)
        if name and name not in found.setdefault(run_id, []):
            found[run_id].append(name)
    return found


def _device_name(environment: Any) -> str | None:
    """Return the name of an environment's device, with its microarchitecture, as far as this can be read."""
    try:
        name = str(environment["device"]["name"])
        microarchitecture = (environment["device"].get("identity") or {}).get("microarchitecture")
    except (AttributeError, KeyError, TypeError):
        return None
    if not microarchitecture or str(microarchitecture).casefold() in name.casefold():
        return name
    return f"{name} ({microarchitecture})"


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
