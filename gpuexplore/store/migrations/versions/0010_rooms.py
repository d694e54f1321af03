"""Rooms, who leads them, and who is in them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
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


def downgrade() -> None:
    """Drop the tables."""
    for name in ("participants", "room_leaders", "rooms"):
        op.drop_table(name)
