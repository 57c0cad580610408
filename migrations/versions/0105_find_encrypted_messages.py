"""Add indexes for encrypted messages, and for messages that still have to be encrypted."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None

_IN_CLEAR = sa.text("text <> ''")


def upgrade() -> None:
    """Upgrade the schema."""
    create_index("ix_mails_send_at", "mails", ["send_at"])
    where = {"postgresql_where": _IN_CLEAR, "sqlite_where": _IN_CLEAR}
    create_index("ix_mails_in_clear", "mails", ["id"], **where)


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index("ix_mails_in_clear", table_name="mails")
    op.drop_index("ix_mails_send_at", table_name="mails")
