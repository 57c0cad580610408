"""Let acknowledged incidents suppress pages of the alerts that join them."""

import sqlalchemy as sa
from alembic import op

revision = "0081"
down_revision = "0080"
branch_labels = None
depends_on = None

_TABLES = "incident_rules", "incidents"


def upgrade() -> None:
    """Upgrade the schema."""
    for table in _TABLES:
        quiets = sa.Column("quiets_alerts", sa.Boolean(), nullable=False, server_default=sa.false())
        op.add_column(table, quiets)


def downgrade() -> None:
    """Downgrade the schema."""
    for table in _TABLES:
        op.drop_column(table, "quiets_alerts")
