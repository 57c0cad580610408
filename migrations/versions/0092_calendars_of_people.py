"""Let a calendar feed contain the shifts of one user in all schedules."""

from alembic import op

from migrations.sqlite_tables import rebuild_tables

revision = "0092"
down_revision = "0091"
branch_labels = None
depends_on = None

_OPTIONAL, _REQUIRED = "schedule_id INTEGER,", "schedule_id INTEGER NOT NULL,"


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("on_call_feeds", "schedule_id", nullable=True)
        return
    # This commits on its own, so after an interruption the table may already have the new
    # definition.
    rebuild_tables({"on_call_feeds": lambda before: before.replace(_REQUIRED, _OPTIONAL)})


def downgrade() -> None:
    """Downgrade the schema. The calendar feeds of users are deleted."""
    op.execute("DELETE FROM on_call_feeds WHERE schedule_id IS NULL")
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("on_call_feeds", "schedule_id", nullable=False)
        return
    rebuild_tables({"on_call_feeds": lambda before: before.replace(_OPTIONAL, _REQUIRED)})
