"""Add statistics on deliveries with warnings, so that Postgres uses their index."""

from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

_ANALYZED = "SELECT reltuples > 0 FROM pg_class WHERE oid = 'deliveries'::regclass"


def upgrade() -> None:
    """Upgrade the schema."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    op.execute(
        "CREATE STATISTICS st_deliveries_warnings ON (CAST(remarks AS TEXT)) FROM deliveries"
    )
    # A table that was never analyzed needs no statistics, since Postgres uses its index anyway.
    if connection.exec_driver_sql(_ANALYZED).scalar():
        op.execute("ANALYZE deliveries")


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP STATISTICS st_deliveries_warnings")
