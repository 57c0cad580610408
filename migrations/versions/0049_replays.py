"""Let a refused delivery say as which one it was replayed, and find refused ones by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.add_column("deliveries", sa.Column("replayed_as", ID))
    refused = sa.text("status_code >= 300")
    op.create_index(
        "ix_deliveries_refused",
        "deliveries",
        ["integration_id", "id"],
        postgresql_where=refused,
        sqlite_where=refused,
    )


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_deliveries_refused", table_name="deliveries")
    op.drop_column("deliveries", "replayed_as")
