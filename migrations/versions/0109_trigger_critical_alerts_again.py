"""Let policies choose whether alerts that become critical are triggered again."""

import sqlalchemy as sa
from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None

_TABLE, _COLUMN = "escalation_policies", "retrigger_when_critical"


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(
        _TABLE, sa.Column(_COLUMN, sa.Boolean(), nullable=False, server_default=sa.true())
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column(_TABLE, _COLUMN)
