"""Store the highest deployment number of each project, so that numbers are not reused."""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(
        "projects",
        sa.Column("last_deployment_iid", sa.Integer(), nullable=False, server_default="0"),
    )
    op.execute(
        """
        UPDATE projects SET last_deployment_iid = (
          SELECT max(iid) FROM deployments AS d WHERE d.project_id = projects.id
        ) WHERE id IN (SELECT project_id FROM deployments)
        """
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("projects", "last_deployment_iid")
