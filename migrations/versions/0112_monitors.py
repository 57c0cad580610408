"""Let integrations have a monitor, and alerts belong to it.

The service sets the monitors of existing integrations once no host runs an earlier release
(`domain.alerts.integrations.monitors`).
"""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_PENDING = sa.text("monitor_id IS NULL OR monitor_changed_at IS NOT NULL")


def upgrade() -> None:
    """Upgrade the schema."""
    # Requests also lock alerts before integrations.
    op.add_column("alerts", sa.Column("monitor_id", sa.BigInteger(), nullable=True))
    op.add_column("integrations", sa.Column("monitor_id", sa.BigInteger(), nullable=True))
    op.add_column("integrations", sa.Column("monitor_changed_at", TIME, nullable=True))
    op.create_index(
        "ix_integrations_monitor_pending",
        "integrations",
        ["id"],
        postgresql_where=_PENDING,
        sqlite_where=_PENDING,
    )
    op.create_table(
        "alert_reporters",
        sa.Column("alert_id", ID, nullable=False),
        sa.Column("integration_id", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_alert_reporters_alert_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["integration_id"],
            ["integrations.id"],
            name="fk_alert_reporters_integration_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("alert_id", "integration_id", name="pk_alert_reporters"),
    )
    op.create_index("ix_alert_reporters_integration_id", "alert_reporters", ["integration_id"])


def downgrade() -> None:
    """Downgrade the schema. Alerts of other monitors get no reports of their integrations."""
    op.drop_table("alert_reporters")
    op.drop_column("alerts", "monitor_id")
    op.drop_index("ix_integrations_monitor_pending", table_name="integrations")
    op.drop_column("integrations", "monitor_changed_at")
    op.drop_column("integrations", "monitor_id")
