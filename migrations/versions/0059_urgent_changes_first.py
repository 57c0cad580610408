"""Handle the changes of urgent alerts first, and let projects take turns."""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

_INDEX = "ix_alert_changes_follower_severity_project_id_id"
_FORMER_INDEX = "ix_alert_changes_follower_id"
_ADD = """
INSERT INTO alert_changes (follower, project_id, alert_id, kind, created_at, tries, severity)
SELECT f.follower, NEW.project_id, NEW.id, {kind}, {now}, 0, NEW.severity
FROM alert_followers AS f WHERE f.project_id = NEW.project_id
"""
_FORMER_ADD = """
INSERT INTO alert_changes (follower, project_id, alert_id, kind, created_at, tries)
SELECT f.follower, NEW.project_id, NEW.id, {kind}, {now}, 0
FROM alert_followers AS f WHERE f.project_id = NEW.project_id
"""
#: Statement that raises earlier changes of an alert that became more urgent, because they come
#: first. On Postgres it skips changes that a worker is handling, so that senders do not wait for
#: the worker.
_HURRY = """
UPDATE alert_changes SET severity = NEW.severity WHERE id IN (
  SELECT c.id FROM alert_changes AS c
  JOIN alert_followers AS f ON f.follower = c.follower AND f.project_id = NEW.project_id
  WHERE c.alert_id = NEW.id AND c.severity > NEW.severity{lock}
)
"""
_IS_CHANGED = """
OLD.status <> NEW.status OR (NEW.severity < OLD.severity AND NEW.status <> 'resolved')
"""
_CHANGED = """
CASE WHEN OLD.status = NEW.status THEN 'raised'
  WHEN NEW.status = 'triggered' THEN 'reopened' ELSE NEW.status END
"""
_OPENED = "'opened'"
#: Current time in the format in which SQLAlchemy stores times.
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"
_POSTGRES_NOW = "clock_timestamp()"


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(
        "alert_changes", sa.Column("severity", sa.SmallInteger, nullable=False, server_default="0")
    )
    op.create_index(_INDEX, "alert_changes", ["follower", "severity", "project_id", "id"])
    op.drop_index(_FORMER_INDEX, "alert_changes")
    if _is_postgres():
        lock = _HURRY.format(lock=" FOR UPDATE OF c SKIP LOCKED")
        hurry = f"IF NEW.severity < OLD.severity THEN {lock}; END IF;"
    else:
        hurry = _HURRY.format(lock=" AND NEW.severity < OLD.severity") + ";"
    _write_triggers(_ADD, before_change=hurry)


def downgrade() -> None:
    """Downgrade the schema."""
    _write_triggers(_FORMER_ADD, before_change="")
    op.create_index(_FORMER_INDEX, "alert_changes", ["follower", "id"])
    op.drop_index(_INDEX, "alert_changes")
    op.drop_column("alert_changes", "severity")


def _write_triggers(add: str, *, before_change: str) -> None:
    write = _write_on_postgres if _is_postgres() else _write_on_sqlite
    now = _POSTGRES_NOW if _is_postgres() else _SQLITE_NOW
    opened, changed = (add.format(kind=kind, now=now) for kind in (_OPENED, _CHANGED))
    write("opened", "INSERT", "NEW.status <> 'resolved'", f"{opened};")
    write("changed", "UPDATE OF status, severity", _IS_CHANGED, f"{before_change}{changed};")


def _write_on_postgres(name: str, _event: str, _condition: str, body: str) -> None:
    _execute(
        f"""
        CREATE OR REPLACE FUNCTION alert_{name}_changes() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          {body}
          RETURN NULL;
        END $$
        """
    )


def _write_on_sqlite(name: str, event: str, condition: str, body: str) -> None:
    _execute(f"DROP TRIGGER alert_{name}_changes")
    _execute(
        f"CREATE TRIGGER alert_{name}_changes AFTER {event} ON alerts WHEN {condition} "
        f"BEGIN {body} END"
    )


def _execute(statement: str) -> None:
    op.execute(sa.text(statement.replace(":", "\\:")))


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"
