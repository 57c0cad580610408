"""Tables of incidents and outgoing webhooks."""

import sqlalchemy as sa
from alembic import op

from migrations.release_0_1_0.columns import (
    ID_TYPE,
    TIMESTAMP_TYPE,
    build_foreign_key,
    build_partial_index_options,
)


def create_tables() -> None:
    """Create the tables and their indexes."""
    op.create_table(
        "incident_counters",
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_incident_counters_project_id"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("last_iid", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_incident_counters"),
    )
    op.create_table(
        "incident_rules",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_incident_rules_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("closes_when_resolved", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False, server_default=sa.true()),
        sa.PrimaryKeyConstraint("id", name="pk_incident_rules"),
        sa.UniqueConstraint("project_id", "name", name="uq_incident_rules_project_id_name"),
    )
    op.create_table(
        "incidents",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_incidents_project_id"),
            nullable=False,
        ),
        sa.Column("iid", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("urgency", sa.SmallInteger(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("closes_when_resolved", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column(
            "rule_id",
            ID_TYPE,
            build_foreign_key("incident_rules", "fk_incidents_rule_id", ondelete="SET NULL"),
        ),
        sa.Column(
            "author_id",
            ID_TYPE,
            build_foreign_key("users", "fk_incidents_author_id", ondelete="SET NULL"),
        ),
        sa.Column("author_name", sa.String(255), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("acknowledged_at", TIMESTAMP_TYPE),
        sa.Column("resolved_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
    )
    op.create_index("ix_incidents_author_id", "incidents", ["author_id"])
    op.create_index("ix_incidents_newest", "incidents", ["project_id", "status", "id"])
    op.create_index("ix_incidents_project_id_id", "incidents", ["project_id", "id"])
    op.create_index("ix_incidents_rule_id_id", "incidents", ["rule_id", "id"])
    op.create_index("ix_incidents_urgency", "incidents", ["project_id", "status", "urgency", "id"])
    op.create_index("uq_incidents_project_id_iid", "incidents", ["project_id", "iid"], unique=True)
    op.create_table(
        "incident_alerts",
        sa.Column(
            "incident_id",
            ID_TYPE,
            build_foreign_key("incidents", "fk_incident_alerts_incident_id"),
            nullable=False,
        ),
        sa.Column(
            "alert_id",
            ID_TYPE,
            build_foreign_key("alerts", "fk_incident_alerts_alert_id"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("incident_id", "alert_id", name="pk_incident_alerts"),
    )
    op.create_index("ix_incident_alerts_alert_id", "incident_alerts", ["alert_id"])
    op.create_table(
        "incident_assignees",
        sa.Column(
            "incident_id",
            ID_TYPE,
            build_foreign_key("incidents", "fk_incident_assignees_incident_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_incident_assignees_user_id"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("incident_id", "user_id", name="pk_incident_assignees"),
    )
    op.create_index("ix_incident_assignees_user_id", "incident_assignees", ["user_id"])
    op.create_table(
        "incident_fingerprints",
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_incident_fingerprints_project_id"),
            nullable=False,
        ),
        sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
        sa.Column(
            "incident_id",
            ID_TYPE,
            build_foreign_key("incidents", "fk_incident_fingerprints_incident_id"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("project_id", "fingerprint", name="pk_incident_fingerprints"),
    )
    op.create_index(
        "ix_incident_fingerprints_incident_id", "incident_fingerprints", ["incident_id"]
    )
    op.create_table(
        "incident_notes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "incident_id",
            ID_TYPE,
            build_foreign_key("incidents", "fk_incident_notes_incident_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_incident_notes_user_id", ondelete="SET NULL"),
        ),
        sa.Column("user_name", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("is_internal", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incident_notes"),
    )
    op.create_index("ix_incident_notes_incident_id_id", "incident_notes", ["incident_id", "id"])
    op.create_index("ix_incident_notes_user_id", "incident_notes", ["user_id"])
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_webhook_endpoints_project_id_projects"),
            nullable=False,
        ),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("secret_ciphertext", sa.Text(), nullable=False),
        sa.Column("previous_secret_ciphertext", sa.Text()),
        sa.Column("previous_secret_expires_at", TIMESTAMP_TYPE),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("paused_at", TIMESTAMP_TYPE),
        sa.Column("pause_reason", sa.String(16)),
        sa.Column("last_delivered_at", TIMESTAMP_TYPE),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("failing_since", TIMESTAMP_TYPE),
        sa.Column("last_failed_at", TIMESTAMP_TYPE),
        sa.Column("last_error", sa.Text()),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.Column("claim", ID_TYPE, nullable=False),
        sa.Column("claimed_until", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_endpoints"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhook_endpoints_project_id", "webhook_endpoints", ["project_id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("endpoint_id", ID_TYPE, nullable=False),
        sa.Column("project_id", ID_TYPE, nullable=False),
        sa.Column("message_id", sa.String(40), nullable=False),
        sa.Column("event", sa.String(40), nullable=False),
        sa.Column("order_key", sa.String(40)),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("queued_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("last_try_at", TIMESTAMP_TYPE),
        sa.Column("status_code", sa.SmallInteger()),
        sa.Column("response", sa.Text()),
        sa.Column("duration", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["endpoint_id", "next_try_at", "id"],
        **build_partial_index_options("state = 'waiting'"),
    )
    op.create_index(
        "ix_webhook_deliveries_endpoint_id_id", "webhook_deliveries", ["endpoint_id", "id"]
    )
    op.create_index(
        "ix_webhook_deliveries_order",
        "webhook_deliveries",
        ["endpoint_id", "order_key", "id"],
        **build_partial_index_options("state = 'waiting'"),
    )
    op.create_index("ix_webhook_deliveries_project_id", "webhook_deliveries", ["project_id"])
    op.create_table(
        "webhook_incident_changes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("project_id", ID_TYPE, nullable=False),
        sa.Column("incident_id", ID_TYPE, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_incident_changes"),
    )
    op.create_index(
        "ix_webhook_incident_changes_incident_id_id",
        "webhook_incident_changes",
        ["incident_id", "id"],
    )
