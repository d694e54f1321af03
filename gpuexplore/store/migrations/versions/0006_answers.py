"""What learners answered in lessons."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "answers",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("lesson", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(16), nullable=False),
        sa.Column("step", sa.String(1), nullable=False),
        sa.Column("guesses", sa.JSON(), nullable=False),
        sa.Column("runs", sa.JSON(), nullable=False),
        sa.Column("outcomes", sa.JSON()),
        sa.Column("created_utc", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_answers"),
    )
    op.create_index("ix_answers_owner_lesson_step_number", "answers", ["owner", "lesson", "step", "number"])
    op.create_index("ix_answers_lesson_digest_created_utc", "answers", ["lesson", "digest", "created_utc"])


def downgrade() -> None:
    """Drop the table and everything in it."""
    op.drop_table("answers")
