"""Who else asked for a run that somebody else had queued: it is measured once for all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
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


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("run_askers")
