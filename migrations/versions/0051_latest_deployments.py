"""Find the latest deployments of an environment by an index."""

from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_index("ix_deployments_environment_id_id", "deployments", ["environment_id", "id"])
    op.drop_index("ix_deployments_environment_id", table_name="deployments")


def downgrade() -> None:
    """Go back."""
    op.create_index("ix_deployments_environment_id", "deployments", ["environment_id"])
    op.drop_index("ix_deployments_environment_id_id", table_name="deployments")
