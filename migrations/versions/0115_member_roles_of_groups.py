"""Let member roles belong to groups."""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("member_roles", sa.Column("group_id", BIG, nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("member_roles", "group_id")
