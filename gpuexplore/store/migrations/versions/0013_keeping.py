"""How long devices worked in all, for monitoring."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "device_use",
        sa.Column("devices", sa.String(1000), nullable=False),
        sa.Column("device_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("devices", name="pk_device_use"),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("device_use")
