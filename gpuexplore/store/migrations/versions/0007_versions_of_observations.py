"""With which software an activity was done."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; what was observed before has no versions."""
    op.add_column("observations", sa.Column("versions", sa.JSON()))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("observations", "versions")
