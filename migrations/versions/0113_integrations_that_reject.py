"""Store the time since which an integration has only rejected requests."""

import sqlalchemy as sa
from alembic import op

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    column = sa.Column("rejected_since", sa.DateTime(timezone=True), nullable=True)
    op.add_column("integrations", column)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("integrations", "rejected_since")
