"""Add an index for the pages about an incident."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0091"
down_revision = "0090"
branch_labels = None
depends_on = None

_OF_INCIDENTS = sa.text("incident_id IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    where = {"postgresql_where": _OF_INCIDENTS, "sqlite_where": _OF_INCIDENTS}
    create_index("ix_pages_incident_id", "pages", ["incident_id"], **where)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_pages_incident_id", table_name="pages")
