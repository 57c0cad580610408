"""Store return URLs that are too long for a query parameter."""

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None

NAME = "kept_pages"
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        NAME,
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{NAME}"),
        sa.UniqueConstraint("digest", name=f"uq_{NAME}_digest"),
    )
    op.create_index(f"ix_{NAME}_expires_at", NAME, ["expires_at"])


def downgrade() -> None:
    """Downgrade the schema. Users whose sign-in had a long return URL arrive at the home page."""
    op.drop_table(NAME)
