"""Which results are of a first pass only."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

PROVISIONAL = sa.text("provisional")


def upgrade() -> None:
    """Add the column; whatever was measured before is final."""
    op.add_column("results", sa.Column("provisional", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(
        "ix_results_provisional", "results", ["run_id"], sqlite_where=PROVISIONAL, postgresql_where=PROVISIONAL
    )


def downgrade() -> None:
    """Drop the column, and what only a first pass measured: earlier versions would take it for final."""
    op.execute("DELETE FROM results WHERE provisional")
    op.drop_index("ix_results_provisional", "results")
    op.drop_column("results", "provisional")
