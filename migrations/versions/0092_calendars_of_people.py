"""Let a calendar have the shifts of one user in all schedules, beside those of one schedule."""

from alembic import op

from migrations.sqlite_tables import define_anew

revision = "0092"
down_revision = "0091"
branch_labels = None
depends_on = None

_OPTIONAL, _REQUIRED = "schedule_id INTEGER,", "schedule_id INTEGER NOT NULL,"


def upgrade() -> None:
    """Go forward."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("on_call_feeds", "schedule_id", nullable=True)
        return
    # It commits by itself, so it may find the table as it has to be.
    define_anew({"on_call_feeds": lambda before: before.replace(_REQUIRED, _OPTIONAL)})


def downgrade() -> None:
    """Go back: addresses of people end."""
    op.execute("DELETE FROM on_call_feeds WHERE schedule_id IS NULL")
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("on_call_feeds", "schedule_id", nullable=False)
        return
    define_anew({"on_call_feeds": lambda before: before.replace(_OPTIONAL, _REQUIRED)})
