"""Send audit events to destinations: one row for each event and destination, until it is delivered.

A trigger adds the rows in the transaction of the event, whoever stores it. Without a destination it
reads an empty table.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_QUEUE = """
INSERT INTO audit_stream_entries (stream_id, event_id, message_id, created_at)
SELECT s.id, NEW.id, {message_id}, NEW.created_at FROM audit_streams AS s
"""
_ON_POSTGRES = (
    f"""
    CREATE FUNCTION audit_event_streams() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_QUEUE.format(message_id="replace(gen_random_uuid()::text, '-', '')")};
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER audit_event_streams AFTER INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_event_streams()
    """,
)
_ON_SQLITE = (
    f"""
    CREATE TRIGGER audit_event_streams AFTER INSERT ON audit_events
    BEGIN
      {_QUEUE.format(message_id="lower(hex(randomblob(16)))")};
    END
    """,
)


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "audit_streams",
        sa.Column("id", ID, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret_ciphertext", sa.Text, nullable=False),
        sa.Column("previous_secret_ciphertext", sa.Text),
        sa.Column("previous_secret_expires_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("paused_at", TIME),
        sa.Column("last_delivered_at", TIME),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("failing_since", TIME),
        sa.Column("last_failed_at", TIME),
        sa.Column("last_error", sa.Text),
        sa.Column("next_try_at", TIME),
        sa.Column("claim", ID, nullable=False),
        sa.Column("claimed_until", TIME),
        sa.Column("dropped", ID, nullable=False),
        sa.Column("last_dropped_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_audit_streams"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit_stream_entries",
        sa.Column("id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("event_id", ID),
        sa.Column("payload", sa.JSON),
        sa.Column("actor_id", ID),
        sa.Column("message_id", sa.String(32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_stream_entries"),
    )
    op.create_index(
        "ix_audit_stream_entries_stream_id_id", "audit_stream_entries", ["stream_id", "id"]
    )
    for statement in _ON_POSTGRES if _is_postgres() else _ON_SQLITE:
        op.execute(statement)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    op.execute(f"DROP TRIGGER audit_event_streams{' ON audit_events' if _is_postgres() else ''}")
    if _is_postgres():
        op.execute("DROP FUNCTION audit_event_streams")
    op.drop_table("audit_stream_entries")
    op.drop_table("audit_streams")
