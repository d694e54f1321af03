"""How long devices worked in all, who did what, and which devices are held back."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
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


def downgrade() -> None:
    """Drop the tables."""
    for name in ("device_holds", "audit", "device_use"):
        op.drop_table(name)
