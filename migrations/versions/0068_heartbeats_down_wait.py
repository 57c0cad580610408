"""Check heartbeats that are down again.

Earlier releases checked them only at their next ping, so an alert that a user had resolved did not
reopen. The check is due after the interval and the grace time, at least after a minute. The same
delay now applies after each resolution. For a cron schedule, the interval counts as an hour. By
then, no hosts of the former release are running that would clear the due time again.
"""

from alembic import op

from migrations.online_changes import update_in_batches

revision = "0068"
down_revision = "0067"
branch_labels = None
depends_on = None

_SECONDS = "(coalesce(every_seconds, 3600) + grace_seconds)"
_REST = f"CASE WHEN {_SECONDS} < 60 THEN 60 ELSE {_SECONDS} END"
_NOW = {
    "sqlite": "CAST(strftime('%s', 'now') AS BIGINT)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)",
}


def upgrade() -> None:
    """Upgrade the schema."""
    now = _NOW[op.get_bind().dialect.name]
    update_in_batches(
        "heartbeats",
        f"due_ms = ({now} + {_REST}) * 1000",
        where="state = 'down' AND due_ms IS NULL",
    )


def downgrade() -> None:
    """Downgrade the schema. The former release checks these heartbeats once."""
