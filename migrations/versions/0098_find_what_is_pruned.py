"""Replace large indexes for pruning tokens and codes with small partial indexes."""

import sqlalchemy as sa
from alembic import op

from migrations.online_changes import create_index, drop_index

revision = "0098"
down_revision = "0097"
branch_labels = None
depends_on = None

_ALONE = sa.text("refresh_digest IS NULL")
# Redemptions, which look up an unused code by its key, must not use these indexes.
_UNUSED = sa.text("code_used_at IS NULL AND code_expires_at IS NOT NULL")
_REVOKED = sa.text("revoked_at IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    unused = {"postgresql_where": _UNUSED, "sqlite_where": _UNUSED}
    create_index("ix_authorizations_unused_code", "authorizations", ["code_expires_at"], **unused)
    alone = {"postgresql_where": _ALONE, "sqlite_where": _ALONE}
    create_index("ix_access_tokens_alone", "access_tokens", ["expires_at"], **alone)
    table = "personal_access_tokens"
    create_index(f"ix_{table}_expires_at_id", table, ["expires_at", "id"])
    revoked = {"postgresql_where": _REVOKED, "sqlite_where": _REVOKED}
    create_index(f"ix_{table}_revoked_at", table, ["revoked_at"], **revoked)
    create_index("ix_mails_created_at", "mails", ["created_at"])
    drop_index("ix_authorizations_code_expires_at", "authorizations")
    drop_index("ix_access_tokens_expires_at", "access_tokens")


def downgrade() -> None:
    """Downgrade the schema."""
    create_index("ix_access_tokens_expires_at", "access_tokens", ["expires_at"])
    create_index("ix_authorizations_code_expires_at", "authorizations", ["code_expires_at"])
    op.drop_index("ix_mails_created_at", table_name="mails")
    for name in ("revoked_at", "expires_at_id"):
        op.drop_index(f"ix_personal_access_tokens_{name}", table_name="personal_access_tokens")
    op.drop_index("ix_access_tokens_alone", table_name="access_tokens")
    op.drop_index("ix_authorizations_unused_code", table_name="authorizations")
