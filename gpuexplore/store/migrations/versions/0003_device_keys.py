"""What users entered for a device is found by the device's key: two processors of one name have two.

Rows that are there keep the name: nobody can say which processor of that name was meant.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = ("own_peaks", "own_bandwidths")


def upgrade() -> None:
    """Rename the column that holds names to what it holds from now on."""
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN device_name TO device_key")


def downgrade() -> None:
    """Name the column as before; what was entered by key stays, and is found by no name."""
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN device_key TO device_name")
