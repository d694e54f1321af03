"""What a room is asked to do, and what is guessed there."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and the column that keeps names off the wall."""
    op.add_column("rooms", sa.Column("names_shown", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "room_tasks",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("room", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.Column("revealed", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("frozen_utc", sa.String(32)),
        sa.Column("hidden", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("ends_epoch_s", sa.Float()),
        sa.PrimaryKeyConstraint("number", name="pk_room_tasks"),
        sa.ForeignKeyConstraint(["room"], ["rooms.number"], name="fk_room_tasks_room_rooms", ondelete="CASCADE"),
    )
    op.create_index("ix_room_tasks_room", "room_tasks", ["room"])
    op.create_table(
        "room_guesses",
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("participant", sa.Integer(), nullable=False),
        sa.Column("guess", sa.Float(), nullable=False),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("task", "participant", name="pk_room_guesses"),
        sa.ForeignKeyConstraint(
            ["task"], ["room_tasks.number"], name="fk_room_guesses_task_room_tasks", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["participant"],
            ["participants.number"],
            name="fk_room_guesses_participant_participants",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_room_guesses_participant", "room_guesses", ["participant"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("room_guesses")
    op.drop_table("room_tasks")
    with op.batch_alter_table("rooms") as rooms:
        rooms.drop_column("names_shown")
