"""Store the periods in which users could be on call."""

import sqlalchemy as sa
from alembic import op

revision = "0097"
down_revision = "0096"
branch_labels = None
depends_on = None

NAME = "on_call_eligibilities"
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        NAME,
        sa.Column("id", BIG, nullable=False),
        sa.Column("schedule_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        *(
            sa.ForeignKeyConstraint(
                [f"{each}_id"], [f"{table}.id"], name=f"fk_{NAME}_{each}_id", ondelete="CASCADE"
            )
            for each, table in (("schedule", "on_call_schedules"), ("user", "users"))
        ),
        sa.PrimaryKeyConstraint("id", name=f"pk_{NAME}"),
    )
    for column in ("schedule_id", "user_id", "until"):
        op.create_index(f"ix_{NAME}_{column}", NAME, [column])


def downgrade() -> None:
    """Downgrade the schema. Past shifts of users who have left are no longer shown."""
    op.drop_table(NAME)
