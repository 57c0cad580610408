"""Allow at most one personal namespace for each user."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0077"
down_revision = "0076"
branch_labels = None
depends_on = None

_OWNED = sa.text("owner_id IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    where = {"postgresql_where": _OWNED, "sqlite_where": _OWNED, "unique": True}
    create_index("uq_groups_owner_id", "groups", ["owner_id"], **where)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("uq_groups_owner_id", table_name="groups")
