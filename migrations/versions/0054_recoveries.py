"""Keep when the report arrived that resolved an alert."""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    column = sa.Column("recovery_received_at", sa.DateTime(timezone=True))
    op.add_column("alerts", column)


def downgrade() -> None:
    """Go back."""
    op.drop_column("alerts", "recovery_received_at")
