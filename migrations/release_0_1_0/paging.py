"""Tables of schedules, escalation policies, contacts, pages and silences."""

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
        "on_call_schedules",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_on_call_schedules_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("name_key", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_schedules"),
        sa.UniqueConstraint(
            "project_id", "name_key", name="uq_on_call_schedules_project_id_name_key"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "on_call_rotations",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "schedule_id",
            ID_TYPE,
            build_foreign_key("on_call_schedules", "fk_on_call_rotations_schedule_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("layer", sa.SmallInteger(), nullable=False),
        sa.Column("unit", sa.String(8), nullable=False),
        sa.Column("every", sa.SmallInteger(), nullable=False),
        sa.Column("weekdays", sa.JSON(), nullable=False),
        sa.Column("handover_time", sa.Time(), nullable=False),
        sa.Column("starts_on", sa.Date(), nullable=False),
        sa.Column("first_turn", sa.SmallInteger(), nullable=False),
        sa.Column("restrictions", sa.JSON(), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("valid_from", TIMESTAMP_TYPE, nullable=False),
        sa.Column("valid_until", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_rotations"),
    )
    op.create_index("ix_on_call_rotations_schedule_id", "on_call_rotations", ["schedule_id"])
    op.create_index("ix_on_call_rotations_valid_until", "on_call_rotations", ["valid_until"])
    op.create_table(
        "on_call_turns",
        sa.Column(
            "rotation_id",
            ID_TYPE,
            build_foreign_key("on_call_rotations", "fk_on_call_turns_rotation_id"),
            nullable=False,
        ),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_turns_user_id"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("rotation_id", "position", name="pk_on_call_turns"),
    )
    op.create_index("ix_on_call_turns_user_id", "on_call_turns", ["user_id"])
    op.create_table(
        "on_call_overrides",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "schedule_id",
            ID_TYPE,
            build_foreign_key("on_call_schedules", "fk_on_call_overrides_schedule_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_overrides_user_id"),
            nullable=False,
        ),
        sa.Column("starts_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("ends_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column(
            "created_by",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_overrides_created_by", ondelete="SET NULL"),
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_overrides"),
    )
    op.create_index("ix_on_call_overrides_created_by", "on_call_overrides", ["created_by"])
    op.create_index("ix_on_call_overrides_ends_at", "on_call_overrides", ["ends_at"])
    op.create_index(
        "ix_on_call_overrides_schedule_id_ends_at", "on_call_overrides", ["schedule_id", "ends_at"]
    )
    op.create_index("ix_on_call_overrides_user_id", "on_call_overrides", ["user_id"])
    op.create_table(
        "on_call_swaps",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "schedule_id",
            ID_TYPE,
            build_foreign_key("on_call_schedules", "fk_on_call_swaps_schedule_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_swaps_user_id"),
            nullable=False,
        ),
        sa.Column("starts_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("ends_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column(
            "other_user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_swaps_other_user_id"),
            nullable=False,
        ),
        sa.Column("other_starts_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("other_ends_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("over_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column(
            "created_by",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_swaps_created_by", ondelete="SET NULL"),
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_swaps"),
    )
    op.create_index("ix_on_call_swaps_created_by", "on_call_swaps", ["created_by"])
    op.create_index("ix_on_call_swaps_other_user_id", "on_call_swaps", ["other_user_id"])
    op.create_index("ix_on_call_swaps_over_at", "on_call_swaps", ["over_at"])
    op.create_index(
        "ix_on_call_swaps_schedule_id_over_at", "on_call_swaps", ["schedule_id", "over_at"]
    )
    op.create_index("ix_on_call_swaps_user_id", "on_call_swaps", ["user_id"])
    op.create_table(
        "on_call_feeds",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "schedule_id",
            ID_TYPE,
            build_foreign_key("on_call_schedules", "fk_on_call_feeds_schedule_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_on_call_feeds_user_id"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("keyed_at", TIMESTAMP_TYPE),
        sa.Column("last_read_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_feeds"),
        sa.UniqueConstraint("digest", name="uq_on_call_feeds_digest"),
        sa.UniqueConstraint("user_id", "schedule_id", name="uq_on_call_feeds_user_id_schedule_id"),
    )
    op.create_index("ix_on_call_feeds_schedule_id", "on_call_feeds", ["schedule_id"])
    op.create_table(
        "escalation_policies",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_escalation_policies_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("repeats", sa.SmallInteger(), nullable=False),
        sa.Column("repeat_pause", sa.Integer(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("name_key", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_escalation_policies"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_escalation_policies_project_id_name_key",
        "escalation_policies",
        ["project_id", "name_key"],
        unique=True,
    )
    op.create_table(
        "alert_routes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_alert_routes_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column(
            "policy_id",
            ID_TYPE,
            build_foreign_key("escalation_policies", "fk_alert_routes_policy_id"),
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_routes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_routes_policy_id", "alert_routes", ["policy_id"])
    op.create_index(
        "ix_alert_routes_project_id_position", "alert_routes", ["project_id", "position"]
    )
    op.create_table(
        "escalations",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "alert_id",
            ID_TYPE,
            build_foreign_key("alerts", "fk_escalations_alert_id"),
            nullable=False,
        ),
        sa.Column("project_id", ID_TYPE, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("policy_id", ID_TYPE),
        sa.Column("route_id", ID_TYPE),
        sa.Column("round", sa.SmallInteger(), nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("round_began_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("next_at", TIMESTAMP_TYPE),
        sa.Column("has_reached", sa.Boolean(), nullable=False),
        sa.Column("held_since", TIMESTAMP_TYPE),
        sa.Column("held_by", sa.Text()),
        sa.Column("held_until", TIMESTAMP_TYPE),
        sa.Column("started_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("ended_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_escalations"),
        sa.UniqueConstraint("alert_id", name="uq_escalations_alert_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_escalations_ended_at",
        "escalations",
        ["ended_at"],
        **build_partial_index_options("ended_at IS NOT NULL"),
    )
    op.create_index(
        "ix_escalations_next_at",
        "escalations",
        ["next_at"],
        **build_partial_index_options("next_at IS NOT NULL"),
    )
    op.create_index(
        "ix_escalations_policy_id",
        "escalations",
        ["policy_id"],
        **build_partial_index_options("next_at IS NOT NULL"),
    )
    op.create_table(
        "escalation_pages",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "alert_id",
            ID_TYPE,
            build_foreign_key("alerts", "fk_escalation_pages_alert_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_escalation_pages_user_id", ondelete="SET NULL"),
        ),
        sa.Column("channel_id", ID_TYPE),
        sa.Column("round", sa.SmallInteger(), nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("paged_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_escalation_pages"),
    )
    op.create_index("ix_escalation_pages_alert_id", "escalation_pages", ["alert_id"])
    op.create_index("ix_escalation_pages_paged_at", "escalation_pages", ["paged_at"])
    op.create_index("ix_escalation_pages_user_id", "escalation_pages", ["user_id"])
    op.create_table(
        "contacts",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("user_id", ID_TYPE, build_foreign_key("users", "fk_contacts_user_id")),
        sa.Column("project_id", ID_TYPE, build_foreign_key("projects", "fk_contacts_project_id")),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("address_ciphertext", sa.Text()),
        sa.Column("shown_address", sa.String(255), nullable=False),
        sa.Column("lane", sa.String(255), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("confirmed_at", TIMESTAMP_TYPE),
        sa.Column("code_ciphertext", sa.Text()),
        sa.Column("code_expires_at", TIMESTAMP_TYPE),
        sa.Column("code_tries", sa.SmallInteger(), nullable=False),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.Column("claim", ID_TYPE, nullable=False),
        sa.Column("claimed_until", TIMESTAMP_TYPE),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("failing_since", TIMESTAMP_TYPE),
        sa.Column("last_failed_at", TIMESTAMP_TYPE),
        sa.Column("last_error", sa.Text()),
        sa.Column("last_sent_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_contacts"),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (project_id IS NULL)",
            name=op.f("ck_contacts_ck_contacts_one_owner"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_contacts_next_try_at",
        "contacts",
        ["next_try_at"],
        **build_partial_index_options("next_try_at IS NOT NULL"),
    )
    op.create_index("ix_contacts_project_id", "contacts", ["project_id"])
    op.create_index("ix_contacts_user_id", "contacts", ["user_id"])
    op.create_index(
        "uq_contacts_account_email",
        "contacts",
        ["user_id"],
        unique=True,
        **build_partial_index_options("address_ciphertext IS NULL"),
    )
    op.create_table(
        "page_recipients",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("user_id", ID_TYPE, build_foreign_key("users", "fk_page_recipients_user_id")),
        sa.Column(
            "contact_id", ID_TYPE, build_foreign_key("contacts", "fk_page_recipients_contact_id")
        ),
        sa.Column("due_at", TIMESTAMP_TYPE),
        sa.Column("last_page_at", TIMESTAMP_TYPE),
        sa.Column("last_message_at", TIMESTAMP_TYPE),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("quiet_from", sa.SmallInteger()),
        sa.Column("quiet_until", sa.SmallInteger()),
        sa.Column("critical_breaks_quiet", sa.Boolean(), nullable=False),
        sa.Column("wants_follow_ups", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_page_recipients"),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (contact_id IS NULL)",
            name=op.f("ck_page_recipients_ck_page_recipients_one_kind"),
        ),
        sa.UniqueConstraint("contact_id", name="uq_page_recipients_contact_id"),
        sa.UniqueConstraint("user_id", name="uq_page_recipients_user_id"),
    )
    op.create_index(
        "ix_page_recipients_due_at",
        "page_recipients",
        ["due_at"],
        **build_partial_index_options("due_at IS NOT NULL"),
    )
    op.create_table(
        "page_batches",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "recipient_id",
            ID_TYPE,
            build_foreign_key("page_recipients", "fk_page_batches_recipient_id"),
            nullable=False,
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_page_batches"),
    )
    op.create_index("ix_page_batches_created_at", "page_batches", ["created_at"])
    op.create_index("ix_page_batches_recipient_id_id", "page_batches", ["recipient_id", "id"])
    op.create_table(
        "page_messages",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "contact_id",
            ID_TYPE,
            build_foreign_key("contacts", "fk_page_messages_contact_id"),
            nullable=False,
        ),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column(
            "batch_id", ID_TYPE, build_foreign_key("page_batches", "fk_page_messages_batch_id")
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("ended_at", TIMESTAMP_TYPE),
        sa.Column("outcome", sa.String(16)),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_page_messages"),
    )
    op.create_index("ix_page_messages_batch_id", "page_messages", ["batch_id"])
    op.create_index("ix_page_messages_contact_id_id", "page_messages", ["contact_id", "id"])
    op.create_index("ix_page_messages_ended_at", "page_messages", ["ended_at"])
    op.create_index(
        "ix_page_messages_waiting",
        "page_messages",
        ["contact_id", "id"],
        **build_partial_index_options("ended_at IS NULL"),
    )
    op.create_table(
        "pages",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column(
            "recipient_id",
            ID_TYPE,
            build_foreign_key("page_recipients", "fk_pages_recipient_id"),
            nullable=False,
        ),
        sa.Column(
            "alert_id", ID_TYPE, build_foreign_key("alerts", "fk_pages_alert_id"), nullable=False
        ),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("is_critical", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("due_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("batch_id", ID_TYPE, build_foreign_key("page_batches", "fk_pages_batch_id")),
        sa.Column("withdrawn_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_pages"),
        sa.UniqueConstraint("key", name="uq_pages_key"),
    )
    op.create_index("ix_pages_alert_id", "pages", ["alert_id"])
    op.create_index("ix_pages_batch_id", "pages", ["batch_id"])
    op.create_index("ix_pages_created_at", "pages", ["created_at"])
    op.create_index(
        "ix_pages_waiting",
        "pages",
        ["recipient_id", "due_at"],
        **build_partial_index_options("batch_id IS NULL AND withdrawn_at IS NULL"),
    )
    op.create_table(
        "page_totals",
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("count", ID_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("type", "outcome", name="pk_page_totals"),
    )
