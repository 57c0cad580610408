"""Let incident rules page responders."""

import sqlalchemy as sa
from alembic import op

revision = "0095"
down_revision = "0094"
branch_labels = None
depends_on = None

NAME = "incident_rule_responders"
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        NAME,
        sa.Column("id", BIG, nullable=False),
        sa.Column("rule_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=True),
        sa.Column("schedule_id", BIG, nullable=True),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{table}.id"], name=f"fk_{NAME}_{column}", ondelete=rule
            )
            for column, table, rule in (
                ("rule_id", "incident_rules", "CASCADE"),
                ("user_id", "users", "CASCADE"),
                ("schedule_id", "on_call_schedules", "SET NULL"),
            )
        ),
        sa.PrimaryKeyConstraint("id", name=f"pk_{NAME}"),
    )
    for column in ("rule_id", "user_id", "schedule_id"):
        op.create_index(f"ix_{NAME}_{column}", NAME, [column])


def downgrade() -> None:
    """Downgrade the schema. Rules no longer page anyone."""
    op.drop_table(NAME)
