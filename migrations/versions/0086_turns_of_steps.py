"""Add round-robin steps to escalation policies."""

import sqlalchemy as sa
from alembic import op

revision = "0086"
down_revision = "0085"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("escalations", sa.Column("turns", sa.JSON(none_as_null=True), nullable=True))
    op.create_table(
        "escalation_turns",
        sa.Column("policy_id", BIG, autoincrement=False, nullable=False),
        sa.Column("step", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("target", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["escalation_policies.id"],
            name="fk_escalation_turns_policy_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("policy_id", "step", name="pk_escalation_turns"),
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("escalation_turns")
    op.drop_column("escalations", "turns")
