"""Count errors of API calls, and store time zones of imported calendars."""

import sqlalchemy as sa
from alembic import op

revision = "0122"
down_revision = "0121"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(
        "call_counts", sa.Column("errors", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.add_column(
        "on_call_absences",
        sa.Column("is_floating", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column(
        "on_call_imported_calendars", sa.Column("time_zone", sa.String(length=64), nullable=True)
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("on_call_imported_calendars", "time_zone")
    op.drop_column("on_call_absences", "is_floating")
    op.drop_column("call_counts", "errors")
