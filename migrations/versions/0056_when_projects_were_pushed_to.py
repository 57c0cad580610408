"""Store the time of the last push to a project's repository."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("projects", sa.Column("pushed_at", UTCDateTime()))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("projects", "pushed_at")
