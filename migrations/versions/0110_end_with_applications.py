"""Store the authorization that created a calendar feed, an invitation or a webhook."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TABLES = ("on_call_feeds", "invitations", "webhook_endpoints")


def upgrade() -> None:
    """Upgrade the schema."""
    for table in _TABLES:
        op.add_column(table, sa.Column("authorization_id", BIG, nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    for table in _TABLES:
        op.drop_column(table, "authorization_id")
