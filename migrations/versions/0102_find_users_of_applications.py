"""Add indexes for the users of an application and for its tokens that are not revoked."""

import sqlalchemy as sa

from migrations.online_changes import create_index, drop_index

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

_USERS = ["application_id", "user_id"]
_REVOKED = ["application_id", "revoked_at"]
_WITHOUT_GRANT = sa.text("authorization_id IS NULL AND revoked_at IS NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    for table in ("authorizations", "consents"):
        create_index(f"ix_{table}_application_id_user_id", table, _USERS)
        drop_index(f"ix_{table}_application_id", table)
    create_index("ix_access_tokens_application_id_revoked_at", "access_tokens", _REVOKED)
    alone = {"postgresql_where": _WITHOUT_GRANT, "sqlite_where": _WITHOUT_GRANT}
    create_index("ix_access_tokens_without_grant", "access_tokens", _USERS, **alone)
    drop_index("ix_access_tokens_application_id", "access_tokens")


def downgrade() -> None:
    """Downgrade the schema."""
    create_index("ix_access_tokens_application_id", "access_tokens", ["application_id"])
    drop_index("ix_access_tokens_without_grant", "access_tokens")
    drop_index("ix_access_tokens_application_id_revoked_at", "access_tokens")
    for table in ("consents", "authorizations"):
        create_index(f"ix_{table}_application_id", table, ["application_id"])
        drop_index(f"ix_{table}_application_id_user_id", table)
