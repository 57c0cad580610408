"""Add an index for the pages of a project by time."""

from alembic import op

from migrations.online_changes import create_index

revision = "0083"
down_revision = "0082"
branch_labels = None
depends_on = None

NAME = "ix_escalation_pages_project_id_paged_at"


def upgrade() -> None:
    """Upgrade the schema."""
    create_index(NAME, "escalation_pages", ["project_id", "paged_at"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index(NAME, "escalation_pages")
