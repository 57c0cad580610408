"""Keep the checks of the self-monitor."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "self_monitor_checks",
        sa.Column("id", ID, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stored_ms", sa.Integer),
        sa.Column("paged_ms", sa.Integer),
        sa.Column("resolved_ms", sa.Integer),
        sa.Column("problem", sa.Text),
        sa.Column("switch_problem", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_self_monitor_checks"),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_table("self_monitor_checks")
