"""Add an index for the overrides that replace a user."""

from alembic import op

from migrations.online_changes import create_index

revision = "0088"
down_revision = "0087"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    create_index("ix_on_call_overrides_instead_of_id", "on_call_overrides", ["instead_of_id"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_on_call_overrides_instead_of_id", table_name="on_call_overrides")
