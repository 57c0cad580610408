"""Tables of alerts, integrations, deliveries and the activity of alerts."""

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
        "alert_counters",
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_alert_counters_project_id"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("last_iid", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_alert_counters"),
    )
    op.create_table(
        "integrations",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_integrations_project_id"),
            nullable=False,
        ),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("endpoint_identifier", sa.String(32), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("key_ciphertext", sa.Text(), nullable=False),
        sa.Column("key_last_used_at", TIMESTAMP_TYPE),
        sa.Column("previous_key_digest", sa.LargeBinary(32)),
        sa.Column("previous_key_expires_at", TIMESTAMP_TYPE),
        sa.Column("previous_key_last_used_at", TIMESTAMP_TYPE),
        sa.Column("api_url", sa.Text()),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("sample", sa.Text()),
        sa.Column("mapping", sa.JSON()),
        sa.Column("resolve_after_minutes", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_integrations"),
        sa.UniqueConstraint("endpoint_identifier", name="uq_integrations_endpoint_identifier"),
    )
    op.create_index("ix_integrations_key_digest", "integrations", ["key_digest"])
    op.create_index("ix_integrations_previous_key_digest", "integrations", ["previous_key_digest"])
    op.create_index(
        "ix_integrations_project_id_type_id", "integrations", ["project_id", "type", "id"]
    )
    op.create_table(
        "deliveries",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_deliveries_project_id"),
            nullable=False,
        ),
        sa.Column(
            "integration_id",
            ID_TYPE,
            build_foreign_key("integrations", "fk_deliveries_integration_id", ondelete="SET NULL"),
        ),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("is_test", sa.Boolean(), nullable=False),
        sa.Column("received_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("status_code", sa.SmallInteger(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("sender", sa.String(64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("opened", sa.Integer(), nullable=False),
        sa.Column("joined", sa.Integer(), nullable=False),
        sa.Column("resolved", sa.Integer(), nullable=False),
        sa.Column("remarks", sa.JSON(), nullable=False),
        sa.Column("truncated_alerts", sa.Integer(), nullable=False),
        sa.Column("duration", sa.Integer()),
        sa.Column("skipped", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("mapping", sa.JSON()),
        sa.Column("user_agent", sa.String(255)),
        sa.Column("dropped", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("replayed_as", ID_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_integration_id_id", "deliveries", ["integration_id", "id"])
    op.create_index("ix_deliveries_project_id", "deliveries", ["project_id"])
    op.create_index(
        "ix_deliveries_refused",
        "deliveries",
        ["integration_id", "id"],
        **build_partial_index_options("status_code >= 300"),
    )
    op.create_table(
        "alerts",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_alerts_project_id"),
            nullable=False,
        ),
        sa.Column("iid", sa.Integer(), nullable=False),
        sa.Column(
            "integration_id",
            ID_TYPE,
            build_foreign_key("integrations", "fk_alerts_integration_id", ondelete="SET NULL"),
        ),
        sa.Column(
            "delivery_id",
            ID_TYPE,
            build_foreign_key("deliveries", "fk_alerts_delivery_id", ondelete="SET NULL"),
        ),
        sa.Column("item_index", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(32)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("description", sa.String(1000)),
        sa.Column("service", sa.String(100)),
        sa.Column("monitoring_tool", sa.String(100)),
        sa.Column("hosts", sa.Text(), nullable=False),
        sa.Column("environment", sa.String(255)),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("started_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("ended_at", TIMESTAMP_TYPE),
        sa.Column("last_event_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("query", sa.Text()),
        sa.Column("severity_reason", sa.String(200)),
        sa.Column("raised_from", sa.SmallInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        postgresql_with={"fillfactor": 80},
    )
    op.create_index("ix_alerts_delivery_id", "alerts", ["delivery_id"])
    op.create_index(
        "ix_alerts_environment",
        "alerts",
        ["project_id", "environment", "status", "started_at", "id"],
        **build_partial_index_options("environment IS NOT NULL"),
    )
    op.create_index("ix_alerts_fingerprint", "alerts", ["fingerprint", "project_id", "id"])
    op.create_index(
        "ix_alerts_integration", "alerts", ["integration_id", "status", "started_at", "id"]
    )
    op.create_index(
        "ix_alerts_project_id_started_at_id", "alerts", ["project_id", "started_at", "id"]
    )
    op.create_index(
        "ix_alerts_service",
        "alerts",
        ["project_id", "service", "status", "started_at", "id"],
        **build_partial_index_options("service IS NOT NULL"),
    )
    op.create_index("ix_alerts_started", "alerts", ["project_id", "status", "started_at", "id"])
    op.create_index(
        "ix_alerts_urgency",
        "alerts",
        ["project_id", "status", sa.text("(-severity)"), "started_at", "id"],
    )
    op.create_index(
        "uq_alerts_open_fingerprint",
        "alerts",
        ["fingerprint", "project_id"],
        unique=True,
        **build_partial_index_options("fingerprint IS NOT NULL AND status <> 'resolved'"),
    )
    op.create_index("uq_alerts_project_id_iid", "alerts", ["project_id", "iid"], unique=True)
    op.create_table(
        "occurrences",
        sa.Column(
            "alert_id",
            ID_TYPE,
            build_foreign_key("alerts", "fk_occurrences_alert_id"),
            nullable=False,
        ),
        sa.Column(
            "delivery_id",
            ID_TYPE,
            build_foreign_key("deliveries", "fk_occurrences_delivery_id"),
            nullable=False,
        ),
        sa.Column("item_index", sa.Integer(), nullable=False),
        sa.Column("action", sa.SmallInteger(), nullable=False),
        sa.Column("is_late", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("alert_id", "delivery_id", "item_index", name="pk_occurrences"),
    )
    op.create_index("ix_occurrences_delivery_id", "occurrences", ["delivery_id"])
    op.create_table(
        "alert_notes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "alert_id",
            ID_TYPE,
            build_foreign_key("alerts", "fk_alert_notes_alert_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_alert_notes_user_id", ondelete="SET NULL"),
        ),
        sa.Column("user_name", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("changes", sa.JSON()),
        sa.Column(
            "delivery_id", ID_TYPE, build_foreign_key("deliveries", "fk_alert_notes_delivery_id")
        ),
        sa.Column("via", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_alert_notes"),
    )
    op.create_index("ix_alert_notes_alert_id", "alert_notes", ["alert_id"])
    op.create_index("ix_alert_notes_delivery_id", "alert_notes", ["delivery_id"])
    op.create_table(
        "assignments",
        sa.Column(
            "alert_id",
            ID_TYPE,
            build_foreign_key("alerts", "fk_assignments_alert_id"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_assignments_user_id"), nullable=False
        ),
        sa.PrimaryKeyConstraint("alert_id", name="pk_assignments"),
    )
    op.create_index("ix_assignments_user_id", "assignments", ["user_id"])
    op.create_table(
        "alert_days",
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_alert_days_project_id"),
            nullable=False,
        ),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("environment", sa.String(255), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(
            "project_id", "day", "environment", "severity", name="pk_alert_days"
        ),
    )
    op.create_table(
        "alert_day_additions",
        sa.Column("project_id", ID_TYPE, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("environment", sa.String(255), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
    )
    op.create_index(
        "ix_alert_day_additions_project_id_day", "alert_day_additions", ["project_id", "day"]
    )
    op.create_table(
        "alert_followers",
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_alert_followers_project_id"),
            nullable=False,
        ),
        sa.Column("follower", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "follower", name="pk_alert_followers"),
    )
    op.create_table(
        "alert_changes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("follower", sa.String(16), nullable=False),
        sa.Column("project_id", ID_TYPE, nullable=False),
        sa.Column("alert_id", ID_TYPE, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.Column("last_error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_alert_changes"),
    )
    op.create_index(
        "ix_alert_changes_follower_alert_id_id", "alert_changes", ["follower", "alert_id", "id"]
    )
    op.create_index("ix_alert_changes_follower_id", "alert_changes", ["follower", "id"])
    op.create_table(
        "alert_batches",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_alert_batches_user_id"),
            nullable=False,
        ),
        sa.Column(
            "project_id", ID_TYPE, build_foreign_key("projects", "fk_alert_batches_project_id")
        ),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("list_query", sa.Text(), nullable=False),
        sa.Column("filter", sa.JSON()),
        sa.Column("newest_alert_id", sa.BigInteger(), nullable=False),
        sa.Column("cursor", sa.String(255)),
        sa.Column("matched", sa.Integer()),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("left", sa.Integer(), nullable=False),
        sa.Column("restored", sa.Integer(), nullable=False),
        sa.Column("kept", sa.Integer(), nullable=False),
        sa.Column("undone_to", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_batches"),
    )
    op.create_index("ix_alert_batches_created_at", "alert_batches", ["created_at"])
    op.create_index("ix_alert_batches_project_id", "alert_batches", ["project_id"])
    op.create_index("ix_alert_batches_state_id", "alert_batches", ["state", "id"])
    op.create_index("ix_alert_batches_user_id", "alert_batches", ["user_id"])
    op.create_table(
        "alert_batch_items",
        sa.Column(
            "batch_id",
            ID_TYPE,
            build_foreign_key("alert_batches", "fk_alert_batch_items_batch_id"),
            nullable=False,
        ),
        sa.Column("alert_id", sa.BigInteger(), nullable=False),
        sa.Column("old_status", sa.String(16), nullable=False),
        sa.Column("old_ended_at", TIMESTAMP_TYPE),
        sa.Column("note_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("batch_id", "alert_id", name="pk_alert_batch_items"),
    )
    op.create_table(
        "saved_alert_filters",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_saved_alert_filters_user_id"),
            nullable=False,
        ),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_saved_alert_filters_project_id"),
        ),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_saved_alert_filters"),
    )
    op.create_index(
        "ix_saved_alert_filters_project_id_is_shared",
        "saved_alert_filters",
        ["project_id", "is_shared"],
    )
    op.create_index(
        "ix_saved_alert_filters_user_id_project_id",
        "saved_alert_filters",
        ["user_id", "project_id"],
    )
    op.create_table(
        "silences",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_silences_project_id"),
            nullable=False,
        ),
        sa.Column("matchers", sa.Text(), nullable=False),
        sa.Column("comment", sa.String(1000), nullable=False),
        sa.Column("starts_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("ends_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column(
            "created_by_id",
            ID_TYPE,
            build_foreign_key("users", "fk_silences_created_by_id", ondelete="SET NULL"),
        ),
        sa.Column(
            "ended_by_id",
            ID_TYPE,
            build_foreign_key("users", "fk_silences_ended_by_id", ondelete="SET NULL"),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_silences"),
    )
    op.create_index("ix_silences_created_by_id", "silences", ["created_by_id"])
    op.create_index("ix_silences_ended_by_id", "silences", ["ended_by_id"])
    op.create_index("ix_silences_project_id_ends_at", "silences", ["project_id", "ends_at"])
    op.create_index("ix_silences_project_id_id", "silences", ["project_id", "id"])
    op.create_table(
        "maintenance_windows",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_maintenance_windows_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("local_start", sa.String(16), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(200)),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("first_starts_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_ends_at", TIMESTAMP_TYPE),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column(
            "created_by_id",
            ID_TYPE,
            build_foreign_key("users", "fk_maintenance_windows_created_by_id", ondelete="SET NULL"),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_maintenance_windows"),
    )
    op.create_index(
        "ix_maintenance_windows_created_by_id", "maintenance_windows", ["created_by_id"]
    )
    op.create_index(
        "ix_maintenance_windows_project_id_id", "maintenance_windows", ["project_id", "id"]
    )
    op.create_index(
        "ix_maintenance_windows_project_id_last_ends_at",
        "maintenance_windows",
        ["project_id", "last_ends_at"],
    )
    op.create_table(
        "flap_settings",
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_flap_settings_project_id"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("openings", sa.Integer(), nullable=False),
        sa.Column("within_minutes", sa.Integer(), nullable=False),
        sa.Column("hold_minutes", sa.Integer(), nullable=False),
        sa.Column("reopen_minutes", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_flap_settings"),
    )
    op.create_table(
        "heartbeats",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_heartbeats_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("key_ciphertext", sa.Text(), nullable=False),
        sa.Column("previous_key_digest", sa.LargeBinary(32)),
        sa.Column("previous_key_expires_at", TIMESTAMP_TYPE),
        sa.Column("every_seconds", sa.Integer()),
        sa.Column("cron", sa.String(100)),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("grace_seconds", sa.Integer(), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("environment", sa.String(255)),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("has_alert", sa.Boolean(), nullable=False),
        sa.Column("due_ms", sa.BigInteger()),
        sa.Column("counted_from", TIMESTAMP_TYPE),
        sa.Column("pings", sa.BigInteger(), nullable=False),
        sa.Column("last_ping_at", TIMESTAMP_TYPE),
        sa.Column("last_ping_kind", sa.String(8)),
        sa.Column("last_exit_status", sa.SmallInteger()),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("started_rid", sa.String(36)),
        sa.Column("last_duration_ms", sa.BigInteger()),
        sa.Column("down_since", TIMESTAMP_TYPE),
        sa.Column("paused_at", TIMESTAMP_TYPE),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeats"),
        sa.UniqueConstraint("key_digest", name="uq_heartbeats_key_digest"),
        sa.UniqueConstraint("previous_key_digest", name="uq_heartbeats_previous_key_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_heartbeats_due_ms",
        "heartbeats",
        ["due_ms"],
        **build_partial_index_options("due_ms IS NOT NULL"),
    )
    op.create_index("ix_heartbeats_project_id_id", "heartbeats", ["project_id", "id"])
    op.create_table(
        "heartbeat_pings",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "heartbeat_id",
            ID_TYPE,
            build_foreign_key("heartbeats", "fk_heartbeat_pings_heartbeat_id"),
            nullable=False,
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("exit_status", sa.SmallInteger()),
        sa.Column("rid", sa.String(36)),
        sa.Column("duration_ms", sa.BigInteger()),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("sender", sa.String(64), nullable=False),
        sa.Column("user_agent", sa.String(255), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeat_pings"),
    )
    op.create_index("ix_heartbeat_pings_heartbeat_id_id", "heartbeat_pings", ["heartbeat_id", "id"])
    op.create_table(
        "self_monitor_checks",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("started_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("stored_ms", sa.Integer()),
        sa.Column("paged_ms", sa.Integer()),
        sa.Column("resolved_ms", sa.Integer()),
        sa.Column("problem", sa.Text()),
        sa.Column("switch_problem", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_self_monitor_checks"),
    )
