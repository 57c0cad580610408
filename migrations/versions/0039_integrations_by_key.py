"""Find integrations by their keys, for senders whose URL names none."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

_COLUMNS = ("key_digest", "previous_key_digest")


def upgrade() -> None:
    """Go forward."""
    for column in _COLUMNS:
        op.create_index(f"ix_integrations_{column}", "integrations", [column])


def downgrade() -> None:
    """Go back."""
    for column in _COLUMNS:
        op.drop_index(f"ix_integrations_{column}", "integrations")
