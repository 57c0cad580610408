"""Keep refused token requests of applications, and as what refused senders describe themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.add_column("deliveries", sa.Column("user_agent", sa.String(255)))
    op.create_table(
        "token_refusals",
        sa.Column("id", ID, nullable=False),
        sa.Column("application_id", ID, nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("error", sa.String(64), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("refused_at", TIME, nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("user_agent", sa.String(255)),
        sa.Column("skipped", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_token_refusals"),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_token_refusals_application_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_token_refusals_application_id_reason_id",
        "token_refusals",
        ["application_id", "reason", "id"],
    )
    op.create_index("ix_token_refusals_refused_at", "token_refusals", ["refused_at"])


def downgrade() -> None:
    """Go back."""
    op.drop_table("token_refusals")
    op.drop_column("deliveries", "user_agent")
