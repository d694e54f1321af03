"""The tables of version 0.1.0: runs, results, own peaks and bandwidths, and the supervisors' heartbeats."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    _create_runs()
    _create_results()
    _create_own_rates()
    _create_supervisors()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("experiment", sa.JSON(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("supervisor", sa.String(255)),
        sa.Column("current", sa.Integer()),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.Column("started_utc", sa.String(32)),
        sa.Column("finished_utc", sa.String(32)),
        sa.PrimaryKeyConstraint("number", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
    )
    op.create_index("ix_runs_state_number", "runs", ["state", "number"])
    op.create_index("ix_runs_owner_started_utc", "runs", ["owner", "started_utc"])


def _create_results() -> None:
    op.create_table(
        "results",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(16), nullable=False),
        sa.Column("case_index", sa.Integer(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_results"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_results_run_id", ondelete="CASCADE"),
        sa.UniqueConstraint("run_id", "case_index", name="uq_results_run_id_case_index"),
    )


def _create_own_rates() -> None:
    op.create_table(
        "own_peaks",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("device_name", sa.String(255), nullable=False),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("unit", sa.String(16), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "device_name", "dtype", "unit", name="pk_own_peaks"),
    )
    op.create_table(
        "own_bandwidths",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("device_name", sa.String(255), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "device_name", name="pk_own_bandwidths"),
    )


def _create_supervisors() -> None:
    op.create_table(
        "supervisors",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("beat_utc", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_supervisors"),
    )
