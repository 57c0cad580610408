"""Count what rules of a mapping drop, and let integrations resolve alerts that went silent."""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    dropped = sa.Column("dropped", sa.Integer(), nullable=False, server_default="0")
    op.add_column("deliveries", dropped)
    op.add_column("integrations", sa.Column("resolve_after_minutes", sa.Integer()))


def downgrade() -> None:
    """Go back."""
    op.drop_column("integrations", "resolve_after_minutes")
    op.drop_column("deliveries", "dropped")
