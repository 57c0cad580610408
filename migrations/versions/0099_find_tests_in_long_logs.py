"""Add a partial index for test deliveries, which are rare."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0099"
down_revision = "0098"
branch_labels = None
depends_on = None

_COLUMNS = ["integration_id", "id"]
_TESTS = sa.text("is_test")


def upgrade() -> None:
    """Upgrade the schema."""
    tests = {"postgresql_where": _TESTS, "sqlite_where": _TESTS}
    create_index("ix_deliveries_tests", "deliveries", _COLUMNS, **tests)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_deliveries_tests", table_name="deliveries")
