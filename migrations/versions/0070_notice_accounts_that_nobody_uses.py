"""Notice accounts that nobody uses."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0070"
down_revision = "0069"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.add_column("users", sa.Column("idle_noticed_at", UTCDateTime(), nullable=True))


def downgrade() -> None:
    """Go back."""
    op.drop_column("users", "idle_noticed_at")
