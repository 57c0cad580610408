"""Store a repeat and a recovery in addition to the sample of an integration."""

import sqlalchemy as sa
from alembic import op

revision = "0123"
down_revision = "0122"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("integrations", sa.Column("sample_repeat", sa.Text(), nullable=True))
    op.add_column("integrations", sa.Column("sample_recovery", sa.Text(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("integrations", "sample_recovery")
    op.drop_column("integrations", "sample_repeat")
