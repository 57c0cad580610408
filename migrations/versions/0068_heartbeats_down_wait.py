"""Look again at heartbeats that are down.

The releases before looked at them with their next ping alone: an alert that somebody had resolved
did not open again. They get as long as from now on after each resolution: their interval and grace
time, at least a minute. For a schedule in cron's format it is an hour. By then, hosts of the former
release are gone, which would forget them again.
"""

from alembic import op

from migrations.beside_traffic import fill

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
    """Go forward."""
    now = _NOW[op.get_bind().dialect.name]
    fill(
        "heartbeats",
        f"due_ms = ({now} + {_REST}) * 1000",
        where="state = 'down' AND due_ms IS NULL",
    )


def downgrade() -> None:
    """Go back: the former release looks at them once."""
