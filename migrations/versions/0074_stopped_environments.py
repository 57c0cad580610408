"""Let users stop environments."""

import sqlalchemy as sa
from alembic import op

revision = "0074"
down_revision = "0073"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    stopped = sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True)
    op.add_column("environments", stopped)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("environments", "stopped_at")
