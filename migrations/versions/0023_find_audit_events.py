"""Find audit events by their object and by IP address."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_COLUMNS = ("subject", "address")


def upgrade() -> None:
    """Go forward."""
    for column in _COLUMNS:
        op.create_index(f"ix_audit_events_{column}_id", "audit_events", [column, "id"])


def downgrade() -> None:
    """Go back."""
    for column in _COLUMNS:
        op.drop_index(f"ix_audit_events_{column}_id", "audit_events")
