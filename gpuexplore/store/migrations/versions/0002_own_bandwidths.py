"""The users' own memory bandwidths."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "own_bandwidths",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("device_name", sa.String(255), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "device_name", name="pk_own_bandwidths"),
    )


def downgrade() -> None:
    """Drop the table and everything in it."""
    op.drop_table("own_bandwidths")
