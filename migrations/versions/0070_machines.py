"""Add service accounts of applications, and authentication with keys."""

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0069"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "service_accounts",
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.ForeignKeyConstraint(["application_id"], ["applications.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("application_id"),
        sa.UniqueConstraint("user_id"),
    )
    op.add_column("applications", sa.Column("jwks", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("applications", "jwks")
    op.drop_table("service_accounts")
