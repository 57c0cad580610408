"""Add partial indexes for the rare accounts that administrators look for."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

_FEW = (
    ("ix_users_administrators", ["id"], sa.text("kind = 'human' AND is_admin")),
    ("ix_users_not_active", ["state", "id"], sa.text("state <> 'active'")),
    ("ix_users_unconfirmed", ["id"], sa.text("kind = 'human' AND email_confirmed_at IS NULL")),
)


def upgrade() -> None:
    """Upgrade the schema."""
    for name, columns, where in _FEW:
        create_index(name, "users", columns, postgresql_where=where, sqlite_where=where)


def downgrade() -> None:
    """Downgrade the schema."""
    for name, _columns, _where in _FEW:
        op.drop_index(name, table_name="users")
