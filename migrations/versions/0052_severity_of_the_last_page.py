"""Store the severity of each recipient's last page."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("page_recipients", sa.Column("last_page_severity", sa.SmallInteger()))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("page_recipients", "last_page_severity")
