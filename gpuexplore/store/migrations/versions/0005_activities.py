"""Work in the queue that is no sweep of an operation, and what it observes, apart from the results."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Say of each run what it is, and create the table of observations."""
    op.add_column("runs", sa.Column("kind", sa.String(32), nullable=False, server_default="experiment"))
    op.create_table(
        "observations",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(16), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_observations_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name="pk_observations"),
    )
    op.create_index("ix_observations_run_id_number", "observations", ["run_id", "number"])


def downgrade() -> None:
    """Drop both, with the activities: an earlier version makes nothing of them."""
    op.drop_table("observations")
    op.execute("DELETE FROM runs WHERE kind <> 'experiment'")
    op.drop_column("runs", "kind")
