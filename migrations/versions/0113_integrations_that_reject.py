"""Store since when an integration that worked has only rejected requests."""

import sqlalchemy as sa
from alembic import op

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    column = sa.Column("rejected_since", sa.DateTime(timezone=True), nullable=True)
    op.add_column("integrations", column)


def downgrade() -> None:
    """Go back."""
    op.drop_column("integrations", "rejected_since")
