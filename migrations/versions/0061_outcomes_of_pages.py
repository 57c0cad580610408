"""Store the results of pages, and pass them on to escalations."""

import sqlalchemy as sa
from alembic import op

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _columns() -> dict[str, tuple[sa.Column[object], ...]]:
    return {
        "escalations": (
            sa.Column("judge_at", TIME),
            sa.Column("again_at", TIME),
            sa.Column("last_paged_at", TIME),
            sa.Column("decided_at", TIME),
        ),
        "escalation_pages": (
            sa.Column("escalation_id", ID),
            sa.Column("page_key", sa.String(255)),
            sa.Column("outcome", sa.String(16)),
        ),
        "pages": (
            sa.Column("outcome", sa.String(16)),
            sa.Column("outcome_at", TIME),
            sa.Column("has_news", sa.Boolean, nullable=False, server_default=sa.false()),
        ),
        "page_messages": (
            sa.Column("key", sa.String(255)),
            sa.Column("subject", sa.String(255)),
            sa.Column("text", sa.Text),
        ),
        "flap_settings": (
            sa.Column("holds_critical", sa.Boolean, nullable=False, server_default=sa.false()),
        ),
    }


def upgrade() -> None:
    """Upgrade the schema."""
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)


def downgrade() -> None:
    """Downgrade the schema."""
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)
