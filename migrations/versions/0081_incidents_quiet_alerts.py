"""Let incidents that somebody has acknowledged quiet the alerts that join them."""

import sqlalchemy as sa
from alembic import op

revision = "0081"
down_revision = "0080"
branch_labels = None
depends_on = None

_TABLES = "incident_rules", "incidents"


def upgrade() -> None:
    """Go forward."""
    for table in _TABLES:
        quiets = sa.Column("quiets_alerts", sa.Boolean(), nullable=False, server_default=sa.false())
        op.add_column(table, quiets)


def downgrade() -> None:
    """Go back."""
    for table in _TABLES:
        op.drop_column(table, "quiets_alerts")
