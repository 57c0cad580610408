"""Add a detail to job turns: the size of a backup, or the reason for a failure."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("job_turns", sa.Column("detail", sa.String(255), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("job_turns", "detail")
