"""Let pages be about incidents in addition to alerts."""

from alembic import op

from migrations.sqlite_tables import rebuild_tables

revision = "0090"
down_revision = "0089"
branch_labels = None
depends_on = None

_ALERT = "alert_id INTEGER NOT NULL,"
_EITHER = "alert_id INTEGER,"
_REFERENCES = "REFERENCES incidents (id) ON DELETE CASCADE"
#: Start of the constraints in the table definition.
_KEY = "CONSTRAINT pk_pages "
_INCIDENT = (
    "incident_id INTEGER, "
    f"CONSTRAINT fk_pages_incident_id FOREIGN KEY(incident_id) {_REFERENCES}, {_KEY}"
)


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE pages ALTER COLUMN alert_id DROP NOT NULL, ADD COLUMN incident_id BIGINT"
            f" CONSTRAINT fk_pages_incident_id {_REFERENCES}"
        )
        return
    rebuild_tables({"pages": _with_incidents})


def _with_incidents(before: str) -> str:
    if "incident_id" in before:
        return before
    return before.replace(_ALERT, _EITHER).replace(_KEY, _INCIDENT)


def downgrade() -> None:
    """Downgrade the schema. Pages about incidents are deleted."""
    op.execute("DELETE FROM pages WHERE alert_id IS NULL")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE pages DROP COLUMN incident_id, ALTER COLUMN alert_id SET NOT NULL")
        return
    rebuild_tables({"pages": lambda now: now.replace(_EITHER, _ALERT).replace(_INCIDENT, _KEY)})
