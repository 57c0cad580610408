"""Keep the highest number that a deployment of a project ever had, so that none comes again."""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
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
    """Go back."""
    op.drop_column("projects", "last_deployment_iid")
