"""Store requested escalations for the seconds in which they can be undone."""

import sqlalchemy as sa
from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None

NAME = "pending_escalations"
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        NAME,
        sa.Column("alert_id", BIG, nullable=False, autoincrement=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("asked_by_id", BIG, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name=f"fk_{NAME}_alert_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("alert_id", name=f"pk_{NAME}"),
    )
    op.create_index(f"ix_{NAME}_due_at", NAME, ["due_at"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table(NAME)
