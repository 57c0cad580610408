"""Let applications that were written for GitLab opt out of `iss`."""

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    column = sa.Column("omit_iss", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("applications", column)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("applications", "omit_iss")
