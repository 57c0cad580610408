"""Mark messages while an attempt to send them is in progress."""

import sqlalchemy as sa
from alembic import op

revision = "0096"
down_revision = "0095"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    column = sa.Column("is_under_way", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("page_messages", column)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("page_messages", "is_under_way")
