"""Find the overrides that take the shifts of a user."""

from alembic import op

from migrations.beside_traffic import create_index

revision = "0088"
down_revision = "0087"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    create_index("ix_on_call_overrides_instead_of_id", "on_call_overrides", ["instead_of_id"])


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_on_call_overrides_instead_of_id", table_name="on_call_overrides")
