"""Let administrators allow grants to applications, and mark exchanged tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0069"
down_revision = "0068"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    allowed = sa.Column("allowed_grants", sa.Text(), nullable=False, server_default="")
    op.add_column("applications", allowed)
    exchanged = sa.Column("is_exchanged", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("access_tokens", exchanged)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("access_tokens", "is_exchanged")
    op.drop_column("applications", "allowed_grants")
