"""Add indexes for the audit events of a project or group."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0066"
down_revision = "0065"
branch_labels = None
depends_on = None

_COLUMNS = ("project_id", "group_id")


def upgrade() -> None:
    """Upgrade the schema."""
    for name in _COLUMNS:
        has_place = sa.text(f"{name} IS NOT NULL")
        create_index(
            f"ix_audit_events_{name}_id",
            "audit_events",
            [name, "id"],
            postgresql_where=has_place,
            sqlite_where=has_place,
        )


def downgrade() -> None:
    """Downgrade the schema."""
    for name in _COLUMNS:
        op.drop_index(f"ix_audit_events_{name}_id", "audit_events")
