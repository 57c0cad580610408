"""Add indexes for page results that escalations have to process."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None

_UNDER_WAY = sa.text("next_at IS NOT NULL")
_NEWS = sa.text("has_news")


def upgrade() -> None:
    """Upgrade the schema."""
    under_way = {"postgresql_where": _UNDER_WAY, "sqlite_where": _UNDER_WAY}
    create_index("ix_escalations_decided_at", "escalations", ["decided_at"], **under_way)
    create_index("ix_escalation_pages_escalation_id", "escalation_pages", ["escalation_id"])
    create_index("uq_escalation_pages_page_key", "escalation_pages", ["page_key"], unique=True)
    columns = ["contact_id", "key"]
    create_index("uq_page_messages_contact_id_key", "page_messages", columns, unique=True)
    news = {"postgresql_where": _NEWS, "sqlite_where": _NEWS}
    create_index("ix_pages_news", "pages", ["id"], **news)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_pages_news", table_name="pages")
    op.drop_index("uq_page_messages_contact_id_key", table_name="page_messages")
    op.drop_index("uq_escalation_pages_page_key", table_name="escalation_pages")
    op.drop_index("ix_escalation_pages_escalation_id", table_name="escalation_pages")
    op.drop_index("ix_escalations_decided_at", table_name="escalations")
