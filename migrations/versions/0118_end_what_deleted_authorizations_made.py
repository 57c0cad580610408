"""On SQLite, disable the objects of an authorization when it is deleted.

SQLite reuses the highest id after its row is deleted. Otherwise, the objects of a deleted
authorization would belong to the next one.
"""

from alembic import op

revision = "0118"
down_revision = "0117"
branch_labels = None
depends_on = None

#: Id that no authorization has.
_GONE = -1
_TABLES = ("contacts", "invitations", "on_call_feeds", "webhook_endpoints")


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name != "sqlite":
        return
    ends = "".join(
        f"UPDATE {table} SET authorization_id = {_GONE} WHERE authorization_id = OLD.id; "  # noqa: S608
        for table in _TABLES
    )
    op.execute(f"CREATE TRIGGER authorizations_gone AFTER DELETE ON authorizations BEGIN {ends}END")


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER authorizations_gone")
