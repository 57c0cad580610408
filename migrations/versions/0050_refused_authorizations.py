"""Keep the redirect URI of a refused request if it is not a registered one."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.add_column("token_refusals", sa.Column("redirect_uri", sa.Text))


def downgrade() -> None:
    """Go back."""
    op.drop_column("token_refusals", "redirect_uri")
