"""Let acknowledgements expire, and store who requested a manual page."""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0079"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    timeout = sa.Column("acknowledgement_timeout", sa.Integer(), nullable=True)
    op.add_column("escalation_policies", timeout)
    op.add_column("escalations", sa.Column("answered_by_id", BIG, nullable=True))
    op.add_column("escalation_pages", sa.Column("asked_by_id", BIG, nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("escalation_pages", "asked_by_id")
    op.drop_column("escalations", "answered_by_id")
    op.drop_column("escalation_policies", "acknowledgement_timeout")
