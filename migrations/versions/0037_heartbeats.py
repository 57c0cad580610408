"""Keep heartbeats and their pings."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
#: As integrations have it (migration 0008): alerts are numbered by a sequence of their project.
_NUMBERS = """
CREATE TRIGGER heartbeat_alert_numbers AFTER INSERT ON heartbeats
FOR EACH ROW EXECUTE FUNCTION alert_numbers_begin()
"""


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "heartbeats",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("key_ciphertext", sa.Text, nullable=False),
        sa.Column("previous_key_digest", sa.LargeBinary(32)),
        sa.Column("previous_key_expires_at", TIME),
        sa.Column("every_seconds", sa.Integer),
        sa.Column("cron", sa.String(100)),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("grace_seconds", sa.Integer, nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("environment", sa.String(255)),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("has_alert", sa.Boolean, nullable=False),
        sa.Column("due_ms", sa.BigInteger),
        sa.Column("counted_from", TIME),
        sa.Column("pings", sa.BigInteger, nullable=False),
        sa.Column("last_ping_at", TIME),
        sa.Column("last_ping_kind", sa.String(8)),
        sa.Column("last_exit_status", sa.SmallInteger),
        sa.Column("started_ms", sa.BigInteger),
        sa.Column("started_rid", sa.String(36)),
        sa.Column("last_duration_ms", sa.BigInteger),
        sa.Column("down_since", TIME),
        sa.Column("paused_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_heartbeats_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeats"),
        sa.UniqueConstraint("key_digest", name="uq_heartbeats_key_digest"),
        sa.UniqueConstraint("previous_key_digest", name="uq_heartbeats_previous_key_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_heartbeats_project_id_id", "heartbeats", ["project_id", "id"])
    is_due = sa.text("due_ms IS NOT NULL")
    op.create_index(
        *("ix_heartbeats_due_ms", "heartbeats", ["due_ms"]),
        postgresql_where=is_due,
        sqlite_where=is_due,
    )
    op.create_table(
        "heartbeat_pings",
        sa.Column("id", ID, nullable=False),
        sa.Column("heartbeat_id", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("exit_status", sa.SmallInteger),
        sa.Column("rid", sa.String(36)),
        sa.Column("duration_ms", sa.BigInteger),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("sender", sa.String(64), nullable=False),
        sa.Column("user_agent", sa.String(255), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.ForeignKeyConstraint(
            ["heartbeat_id"],
            ["heartbeats.id"],
            name="fk_heartbeat_pings_heartbeat_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeat_pings"),
    )
    op.create_index("ix_heartbeat_pings_heartbeat_id_id", "heartbeat_pings", ["heartbeat_id", "id"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_NUMBERS)


def downgrade() -> None:
    """Go back."""
    op.drop_table("heartbeat_pings")
    op.drop_table("heartbeats")
