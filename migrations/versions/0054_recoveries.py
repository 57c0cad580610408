"""Store the arrival time of the report that resolved an alert."""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    column = sa.Column("recovery_received_at", sa.DateTime(timezone=True))
    op.add_column("alerts", column)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("alerts", "recovery_received_at")
