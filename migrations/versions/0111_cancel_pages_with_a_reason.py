"""Store why pages are held back, why messages are cancelled, and what was attempted."""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("pages", sa.Column("held_by", sa.Text(), nullable=True))
    op.add_column("page_messages", sa.Column("cancelled_because", sa.Text(), nullable=True))
    op.add_column("page_messages", sa.Column("attempt_id", BIG, nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("page_messages", "attempt_id")
    op.drop_column("page_messages", "cancelled_because")
    op.drop_column("pages", "held_by")
