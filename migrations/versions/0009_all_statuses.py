"""Let lists of all statuses be read in one go: put together from one list for each, a page of them
reads far back in the history of every rare status.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_index(
        "ix_alerts_project_id_started_at_id", "alerts", ["project_id", "started_at", "id"]
    )


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_alerts_project_id_started_at_id", "alerts")
