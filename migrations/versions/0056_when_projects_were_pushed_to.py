"""Keep when something was last pushed to the repository of a project."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.add_column("projects", sa.Column("pushed_at", UTCDateTime()))


def downgrade() -> None:
    """Go back."""
    op.drop_column("projects", "pushed_at")
