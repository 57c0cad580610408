"""Outgoing webhooks of projects: endpoints, and one row for each message to one of them."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
WAITING = sa.text("state = 'waiting'")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
        sa.Column("conditions", sa.JSON, nullable=False),
        sa.Column("secret_ciphertext", sa.Text, nullable=False),
        sa.Column("previous_secret_ciphertext", sa.Text),
        sa.Column("previous_secret_expires_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("paused_at", TIME),
        sa.Column("pause_reason", sa.String(16)),
        sa.Column("last_delivered_at", TIME),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("failing_since", TIME),
        sa.Column("last_failed_at", TIME),
        sa.Column("last_error", sa.Text),
        sa.Column("next_try_at", TIME),
        sa.Column("claim", ID, nullable=False),
        sa.Column("claimed_until", TIME),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name="fk_webhook_endpoints_project_id_projects",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_endpoints"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhook_endpoints_project_id", "webhook_endpoints", ["project_id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("endpoint_id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("message_id", sa.String(40), nullable=False),
        sa.Column("event", sa.String(40), nullable=False),
        sa.Column("order_key", sa.String(40)),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("queued_at", TIME, nullable=False),
        sa.Column("next_try_at", TIME),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("last_try_at", TIME),
        sa.Column("status_code", sa.SmallInteger),
        sa.Column("response", sa.Text),
        sa.Column("duration", sa.Integer),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
    )
    op.create_index("ix_webhook_deliveries_project_id", "webhook_deliveries", ["project_id"])
    op.create_index(
        "ix_webhook_deliveries_endpoint_id_id", "webhook_deliveries", ["endpoint_id", "id"]
    )
    for name, column in (("due", "next_try_at"), ("order", "order_key")):
        op.create_index(
            f"ix_webhook_deliveries_{name}",
            "webhook_deliveries",
            ["endpoint_id", column, "id"],
            postgresql_where=WAITING,
            sqlite_where=WAITING,
        )


def downgrade() -> None:
    """Go back."""
    op.execute("DELETE FROM alert_followers WHERE follower = 'webhooks'")
    op.execute("DELETE FROM alert_changes WHERE follower = 'webhooks'")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhook_endpoints")
