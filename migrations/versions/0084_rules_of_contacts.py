"""Add notification rules, which select the alerts and the delay for a contact."""

import sqlalchemy as sa
from alembic import op

revision = "0084"
down_revision = "0083"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("page_messages", sa.Column("due_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "contact_rules",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("contact_id", BIG, nullable=False),
        sa.Column("alerts", sa.String(16), nullable=False),
        sa.Column("delay_minutes", sa.SmallInteger(), nullable=False),
        sa.Column("only", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_contact_rules_user_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["contact_id"], ["contacts.id"], name="fk_contact_rules_contact_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_contact_rules"),
    )
    op.create_index("ix_contact_rules_user_id", "contact_rules", ["user_id"])
    op.create_index("ix_contact_rules_contact_id", "contact_rules", ["contact_id"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("contact_rules")
    op.drop_column("page_messages", "due_at")
