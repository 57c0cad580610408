"""Let an override add a user to those on call."""

import sqlalchemy as sa
from alembic import op

revision = "0094"
down_revision = "0093"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    column = sa.Column("in_addition", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("on_call_overrides", column)


def downgrade() -> None:
    """Downgrade the schema. Users who were on call additionally are no longer on call."""
    op.execute("DELETE FROM on_call_overrides WHERE in_addition")
    op.drop_column("on_call_overrides", "in_addition")
