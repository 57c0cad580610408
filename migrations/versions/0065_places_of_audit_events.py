"""Store the project or group that an audit event affects."""

import sqlalchemy as sa
from alembic import op

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None

_COLUMNS = ("project_id", "group_id")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    for name in _COLUMNS:
        op.add_column("audit_events", sa.Column(name, _ID))


def downgrade() -> None:
    """Downgrade the schema."""
    for name in _COLUMNS:
        op.drop_column("audit_events", name)
