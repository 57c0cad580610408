"""Know of a message that an attempt to send it is under way."""

import sqlalchemy as sa
from alembic import op

revision = "0096"
down_revision = "0095"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    column = sa.Column("is_under_way", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("page_messages", column)


def downgrade() -> None:
    """Go back."""
    op.drop_column("page_messages", "is_under_way")
