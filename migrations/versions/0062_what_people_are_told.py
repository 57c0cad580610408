"""Store pending assignment notices, and the paging gaps that maintainers know."""

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "assignment_notices",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("alert_id", BIG, nullable=True),
        sa.Column("incident_id", BIG, nullable=True),
        sa.Column("by_name", sa.String(255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["incident_id"], ["incidents.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    for column in ("user_id", "alert_id", "incident_id"):
        op.create_index(f"ix_assignment_notices_{column}", "assignment_notices", [column])
    op.create_table(
        "known_gaps",
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("gaps", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id"),
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("known_gaps")
    op.drop_table("assignment_notices")
