"""Keep which project or group an audit event concerns."""

import sqlalchemy as sa
from alembic import op

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None

_COLUMNS = ("project_id", "group_id")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go forward."""
    for name in _COLUMNS:
        op.add_column("audit_events", sa.Column(name, _ID))


def downgrade() -> None:
    """Go back."""
    for name in _COLUMNS:
        op.drop_column("audit_events", name)
