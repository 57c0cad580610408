"""Add an index for groups that require a second factor."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0073"
down_revision = "0072"
branch_labels = None
depends_on = None

_REQUIRED = sa.text("two_factor_required_at IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    where = {"postgresql_where": _REQUIRED, "sqlite_where": _REQUIRED}
    columns = ["two_factor_required_at"]
    create_index("ix_groups_two_factor_required_at", "groups", columns, **where)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_groups_two_factor_required_at", table_name="groups")
