"""How much of the devices those in a room get beside others."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: every room counts as one visitor."""
    op.add_column("rooms", sa.Column("weight", sa.Integer(), nullable=False, server_default=sa.text("1")))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("rooms") as rooms:
        rooms.drop_column("weight")
