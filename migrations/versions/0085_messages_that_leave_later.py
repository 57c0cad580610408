"""Add an index for delayed messages."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0085"
down_revision = "0084"
branch_labels = None
depends_on = None

_LATER = sa.text("due_at IS NOT NULL AND ended_at IS NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    where = {"postgresql_where": _LATER, "sqlite_where": _LATER}
    create_index("ix_page_messages_due_at", "page_messages", ["due_at"], **where)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_page_messages_due_at", table_name="page_messages")
