"""Let administrators' existing tokens keep their access without the scope `admin_mode`."""

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None

_TABLES = ("access_tokens", "personal_access_tokens")


def upgrade() -> None:
    """Upgrade the schema."""
    users = sa.table("users", sa.column("id"), sa.column("is_admin"))
    administrators = sa.select(users.c.id).where(users.c.is_admin)
    for name in _TABLES:
        op.add_column(
            name,
            sa.Column("keeps_admin_mode", sa.Boolean(), server_default=sa.false(), nullable=False),
        )
        table = sa.table(
            name,
            sa.column("user_id"),
            sa.column("revoked_at"),
            sa.column("keeps_admin_mode", sa.Boolean()),
        )
        is_kept = table.c.user_id.in_(administrators) & table.c.revoked_at.is_(None)
        op.execute(sa.update(table).where(is_kept).values(keeps_admin_mode=sa.true()))


def downgrade() -> None:
    """Downgrade the schema."""
    for name in _TABLES:
        op.drop_column(name, "keeps_admin_mode")
