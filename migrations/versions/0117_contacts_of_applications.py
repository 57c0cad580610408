"""Store the authorization that a contact was created with."""

import sqlalchemy as sa
from alembic import op

revision = "0117"
down_revision = "0116"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("contacts", sa.Column("authorization_id", BIG, nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("contacts", "authorization_id")
