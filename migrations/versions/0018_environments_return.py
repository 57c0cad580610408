"""Make a deleted environment anew when one of its alerts is reported once more, or opened again.

Only ignored and resolved alerts have an environment that can be deleted. A new alert always made
its environment; another event of an ignored one, and opening one by hand, now do so as well. Events
of all other alerts cost a comparison.
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_RETURNS = """
NEW.environment IS NOT NULL AND (
  (NEW.status = 'ignored' AND NEW.events > OLD.events)
  OR (NEW.status IN ('triggered', 'acknowledged') AND OLD.status IN ('resolved', 'ignored'))
)
"""
_MAKE = """
INSERT INTO environments (project_id, name, created_at)
SELECT NEW.project_id, NEW.environment, NEW.last_event_at WHERE true
ON CONFLICT (project_id, name) DO NOTHING
"""
_ON_POSTGRES = (
    f"""
    CREATE FUNCTION alert_environment_returns() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_MAKE};
      RETURN NULL;
    END $$
    """,
    f"""
    CREATE TRIGGER alert_environment_returns AFTER UPDATE OF events, status ON alerts
    FOR EACH ROW WHEN ({_RETURNS}) EXECUTE FUNCTION alert_environment_returns()
    """,
)
_ON_SQLITE = (
    f"""
    CREATE TRIGGER alert_environment_returns AFTER UPDATE OF events, status ON alerts
    WHEN {_RETURNS}
    BEGIN
      {_MAKE};
    END
    """,
)


def upgrade() -> None:
    """Go forward."""
    for statement in _ON_POSTGRES if _is_postgres() else _ON_SQLITE:
        op.execute(statement)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    table = " ON alerts" if _is_postgres() else ""
    op.execute(f"DROP TRIGGER alert_environment_returns{table}")
    if _is_postgres():
        op.execute("DROP FUNCTION alert_environment_returns")
