"""Give each person a time zone."""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    column = sa.Column("time_zone", sa.String(64), nullable=False, server_default="UTC")
    op.add_column("users", column)


def downgrade() -> None:
    """Go back."""
    op.drop_column("users", "time_zone")
