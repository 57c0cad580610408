"""Store the keys that sign requests to push services."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0119"
down_revision = "0118"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "push_keys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("private_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_push_keys")),
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("push_keys")
