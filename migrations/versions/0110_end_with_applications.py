"""Store which authorization calendar addresses, invitations and webhooks end with."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TABLES = ("on_call_feeds", "invitations", "webhook_endpoints")


def upgrade() -> None:
    """Go forward."""
    for table in _TABLES:
        op.add_column(table, sa.Column("authorization_id", BIG, nullable=True))


def downgrade() -> None:
    """Go back."""
    for table in _TABLES:
        op.drop_column(table, "authorization_id")
