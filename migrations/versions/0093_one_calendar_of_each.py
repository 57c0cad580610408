"""Allow at most one feed of each calendar for a user."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0093"
down_revision = "0092"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    of_all = sa.text("schedule_id IS NULL")
    create_index(
        *("uq_on_call_feeds_user_id", "on_call_feeds", ["user_id"]),
        unique=True,
        postgresql_where=of_all,
        sqlite_where=of_all,
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("uq_on_call_feeds_user_id", table_name="on_call_feeds")
