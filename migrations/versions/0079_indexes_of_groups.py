"""Add indexes for the resources of groups, with unique names."""

from alembic import op

from migrations.online_changes import create_index

revision = "0079"
down_revision = "0078"
branch_labels = None
depends_on = None

_UNIQUE = ("on_call_schedules", "escalation_policies")
_INDEXES = {
    "alert_routes": ["group_id", "position"],
    "silences": ["group_id", "ends_at"],
    "maintenance_windows": ["group_id", "last_ends_at"],
    "contacts": ["group_id"],
}


def upgrade() -> None:
    """Upgrade the schema."""
    for table in _UNIQUE:
        name = f"uq_{table}_group_id_name_key"
        create_index(name, table, ["group_id", "name_key"], unique=True)
    for table, columns in _INDEXES.items():
        create_index(f"ix_{table}_{'_'.join(columns)}", table, columns)


def downgrade() -> None:
    """Downgrade the schema."""
    for table in _UNIQUE:
        op.drop_index(f"uq_{table}_group_id_name_key", table)
    for table, columns in _INDEXES.items():
        op.drop_index(f"ix_{table}_{'_'.join(columns)}", table)
