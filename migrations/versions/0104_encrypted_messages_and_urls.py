"""Add columns for encrypted messages and encrypted URLs of destinations.

The worker encrypts existing plaintext, because migrations do not have SECRET_KEY. Workers of the
previous release send messages that are due by `mails.next_try_at`. Encrypted messages are therefore
due by `mails.send_at`.
"""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("mails", sa.Column("text_ciphertext", sa.Text(), nullable=True))
    op.add_column("mails", sa.Column("send_at", sa.DateTime(timezone=True), nullable=True))
    for table in ("webhook_endpoints", "audit_streams"):
        op.add_column(table, sa.Column("url_ciphertext", sa.Text(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema."""
    for table in ("audit_streams", "webhook_endpoints"):
        op.drop_column(table, "url_ciphertext")
    op.drop_column("mails", "send_at")
    op.drop_column("mails", "text_ciphertext")
