"""Let integrations accept the key in the URL."""

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    column = sa.Column(
        "accepts_key_in_url", sa.Boolean(), server_default=sa.false(), nullable=False
    )
    op.add_column("integrations", column)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("integrations", "accepts_key_in_url")
