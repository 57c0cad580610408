"""Store the subjects of notices, so that each attempt checks whether they still apply."""

import sqlalchemy as sa
from alembic import op

revision = "0116"
down_revision = "0115"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("mails", sa.Column("about", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("page_messages", sa.Column("about", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("page_messages", "about")
    op.drop_column("mails", "about")
