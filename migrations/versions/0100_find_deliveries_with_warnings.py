"""Add a partial index for deliveries with warnings, which are rare."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0100"
down_revision = "0099"
branch_labels = None
depends_on = None

_WARNED = sa.text("CAST(remarks AS TEXT) <> '[]'")


def upgrade() -> None:
    """Upgrade the schema."""
    warned = {"postgresql_where": _WARNED, "sqlite_where": _WARNED}
    create_index("ix_deliveries_warned", "deliveries", ["integration_id", "id"], **warned)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_deliveries_warned", table_name="deliveries")
