"""Set aside audit events that a receiver rejects."""

import sqlalchemy as sa
from alembic import op

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    tries = sa.Column("tries", sa.Integer(), nullable=False, server_default="0")
    op.add_column("audit_stream_entries", tries)
    op.add_column("audit_stream_entries", sa.Column("set_aside_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("audit_stream_entries", "set_aside_at")
    op.drop_column("audit_stream_entries", "tries")
