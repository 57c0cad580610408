"""Detect unused accounts, and let groups require a second factor."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0072"
down_revision = "0071"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("users", sa.Column("idle_noticed_at", UTCDateTime(), nullable=True))
    op.add_column("groups", sa.Column("two_factor_required_at", UTCDateTime(), nullable=True))
    hours = sa.Column(
        "two_factor_grace_period", sa.Integer(), nullable=False, server_default=sa.text("48")
    )
    op.add_column("groups", hours)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("groups", "two_factor_grace_period")
    op.drop_column("groups", "two_factor_required_at")
    op.drop_column("users", "idle_noticed_at")
