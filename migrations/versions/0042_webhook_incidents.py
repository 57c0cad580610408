"""Tell the webhooks of a project of changes of its incidents.

A trigger adds the rows in the transaction of the change, whoever makes it. Without a webhook it
looks once into an index.
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_ADD = """
INSERT INTO webhook_incident_changes (project_id, incident_id, kind, created_at)
SELECT NEW.project_id, NEW.id, {kind}, {now}
WHERE EXISTS (
  SELECT 1 FROM webhook_endpoints AS e
  WHERE e.project_id = NEW.project_id AND e.paused_at IS NULL
)
"""
_OPENED = "'opened'"
_CHANGED = "CASE WHEN NEW.status = 'triggered' THEN 'reopened' ELSE NEW.status END"
#: In the format in which SQLAlchemy stores times.
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"
_WHEN = {
    "opened": ("INSERT", "", _OPENED),
    "changed": ("UPDATE OF status", "WHEN (OLD.status <> NEW.status)", _CHANGED),
}


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "webhook_incident_changes",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("incident_id", ID, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("next_try_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_incident_changes"),
    )
    op.create_index(
        "ix_webhook_incident_changes_incident_id_id",
        "webhook_incident_changes",
        ["incident_id", "id"],
    )
    for name, (event, condition, kind) in _WHEN.items():
        for statement in _statements(name, event, condition, kind):
            op.execute(sa.text(statement.replace(":", "\\:")))


def _statements(name: str, event: str, condition: str, kind: str) -> tuple[str, ...]:
    trigger = f"CREATE TRIGGER incident_{name}_webhooks AFTER {event} ON incidents"
    if not _is_postgres():
        return (f"{trigger} {condition} BEGIN {_ADD.format(kind=kind, now=_SQLITE_NOW)}; END",)
    function = f"""
    CREATE FUNCTION incident_{name}_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_ADD.format(kind=kind, now="clock_timestamp()")};
      RETURN NULL;
    END $$
    """
    return (
        function,
        f"{trigger} FOR EACH ROW {condition} EXECUTE FUNCTION incident_{name}_webhooks()",
    )


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    for name in _WHEN:
        where = " ON incidents" if _is_postgres() else ""
        op.execute(f"DROP TRIGGER incident_{name}_webhooks{where}")
        if _is_postgres():
            op.execute(f"DROP FUNCTION incident_{name}_webhooks")
    op.drop_table("webhook_incident_changes")
