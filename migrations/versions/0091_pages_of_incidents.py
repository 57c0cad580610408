"""Let pages be about incidents, not only about alerts."""

from alembic import op

from migrations.sqlite_tables import define_anew

revision = "0091"
down_revision = "0089"
branch_labels = None
depends_on = None

_ALERT = "alert_id INTEGER NOT NULL"
_EITHER = "alert_id INTEGER"
_INCIDENT = (
    "incident_id {kind} CONSTRAINT fk_pages_incident_id REFERENCES incidents (id) ON DELETE CASCADE"
)


def upgrade() -> None:
    """Go forward."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE pages ALTER COLUMN alert_id DROP NOT NULL,"
            f" ADD COLUMN {_INCIDENT.format(kind='BIGINT')}"
        )
        return
    define_anew({"pages": lambda before: before.replace(_ALERT, _EITHER)})
    op.execute(f"ALTER TABLE pages ADD COLUMN {_INCIDENT.format(kind='INTEGER')}")


def downgrade() -> None:
    """Go back: pages about incidents are forgotten."""
    op.execute("DELETE FROM pages WHERE alert_id IS NULL")
    op.drop_column("pages", "incident_id")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE pages ALTER COLUMN alert_id SET NOT NULL")
        return
    define_anew({"pages": lambda before: before.replace(f"{_EITHER},", f"{_ALERT},")})
