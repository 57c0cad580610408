"""Add the confirmation of email addresses. Existing addresses count as unconfirmed."""

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("users", sa.Column("email_confirmed_at", TIME))
    op.create_table(
        "email_confirmations",
        sa.Column("user_id", BIG, autoincrement=False, nullable=False),
        sa.Column("email", sa.String(length=255), nullable=False),
        sa.Column("token_digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name="fk_email_confirmations_user_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", name="pk_email_confirmations"),
        sa.UniqueConstraint("token_digest", name="uq_email_confirmations_token_digest"),
    )
    op.create_index("ix_email_confirmations_created_at", "email_confirmations", ["created_at"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("email_confirmations")
    op.drop_column("users", "email_confirmed_at")
