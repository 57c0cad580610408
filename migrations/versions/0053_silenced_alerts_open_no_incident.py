"""Let incident rules skip silenced alerts until the silence is over."""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(
        "incident_rules",
        sa.Column("opens_when_silenced", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "incident_waiting",
        sa.Column("alert_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("alert_id"),
    )
    op.create_index(
        *("ix_incident_waiting_project_id_alert_id", "incident_waiting"), ["project_id", "alert_id"]
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("incident_waiting")
    op.drop_column("incident_rules", "opens_when_silenced")
