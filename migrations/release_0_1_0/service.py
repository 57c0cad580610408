"""Tables of the instance's settings and state, the audit log, and API usage."""

import sqlalchemy as sa
from alembic import op

from migrations.release_0_1_0.columns import ID_TYPE, TIMESTAMP_TYPE, build_foreign_key


def create_tables() -> None:
    """Create the tables and their indexes."""
    op.create_table(
        "installation",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("installed_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
    )
    op.create_table(
        "instance_settings",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_instance_settings"),
    )
    op.create_table(
        "schema_support",
        sa.Column("oldest_revision", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("oldest_revision", name="pk_schema_support"),
    )
    op.create_table(
        "secret_key_uses",
        sa.Column("fingerprint", sa.String(32), nullable=False),
        sa.Column("first_used_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_used_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_secret_key_uses"),
    )
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("key_fingerprints", sa.Text(), nullable=False),
        sa.Column("revision", sa.String(32), nullable=False),
        sa.Column("clock_lead_ms", sa.Integer()),
        sa.Column("seen_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_hosts"),
    )
    op.create_table(
        "job_turns",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("taken_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_job_turns"),
    )
    op.create_table(
        "mails",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("recipient", sa.String(255), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("sent_at", TIMESTAMP_TYPE),
        sa.Column("last_error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_mails"),
        sa.UniqueConstraint("key", name="uq_mails_key"),
    )
    op.create_index("ix_mails_next_try_at", "mails", ["next_try_at"])
    op.create_table(
        "audit_keys",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_keys"),
    )
    op.create_table(
        "audit_seals",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("sealed_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("newest_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("event_count", sa.Integer(), nullable=False),
        sa.Column("events_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("mac", sa.LargeBinary(32), nullable=False),
        sa.Column("pruned_mac", sa.LargeBinary(32)),
        sa.PrimaryKeyConstraint("id", name="pk_audit_seals"),
    )
    op.create_index("ix_audit_seals_newest_at", "audit_seals", ["newest_at"])
    op.create_table(
        "audit_events",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column(
            "actor_id",
            ID_TYPE,
            build_foreign_key("users", "fk_audit_events_actor_id", ondelete="SET NULL"),
        ),
        sa.Column("actor_name", sa.String(255), nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_audit_events_user_id", ondelete="SET NULL"),
        ),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("user_agent", sa.String(255)),
        sa.Column("request_id", sa.String(64)),
        sa.Column("seal_id", ID_TYPE),
        sa.Column("digest", sa.LargeBinary(32)),
        sa.Column("erased_digest", sa.LargeBinary(32)),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
    )
    op.create_index("ix_audit_events_actor_id_id", "audit_events", ["actor_id", "id"])
    op.create_index("ix_audit_events_address_id", "audit_events", ["address", "id"])
    op.create_index("ix_audit_events_created_at", "audit_events", ["created_at"])
    op.create_index("ix_audit_events_kind_id", "audit_events", ["kind", "id"])
    op.create_index("ix_audit_events_seal_id", "audit_events", ["seal_id"])
    op.create_index("ix_audit_events_subject_id", "audit_events", ["subject", "id"])
    op.create_index("ix_audit_events_user_id_id", "audit_events", ["user_id", "id"])
    op.create_table(
        "audit_streams",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret_ciphertext", sa.Text(), nullable=False),
        sa.Column("previous_secret_ciphertext", sa.Text()),
        sa.Column("previous_secret_expires_at", TIMESTAMP_TYPE),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("paused_at", TIMESTAMP_TYPE),
        sa.Column("last_delivered_at", TIMESTAMP_TYPE),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("failing_since", TIMESTAMP_TYPE),
        sa.Column("last_failed_at", TIMESTAMP_TYPE),
        sa.Column("last_error", sa.Text()),
        sa.Column("next_try_at", TIMESTAMP_TYPE),
        sa.Column("claim", ID_TYPE, nullable=False),
        sa.Column("claimed_until", TIMESTAMP_TYPE),
        sa.Column("dropped", ID_TYPE, nullable=False),
        sa.Column("last_dropped_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_audit_streams"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit_stream_entries",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("stream_id", ID_TYPE, nullable=False),
        sa.Column("event_id", ID_TYPE),
        sa.Column("payload", sa.JSON()),
        sa.Column("actor_id", ID_TYPE),
        sa.Column("message_id", sa.String(32), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_stream_entries"),
    )
    op.create_index(
        "ix_audit_stream_entries_stream_id_id", "audit_stream_entries", ["stream_id", "id"]
    )
    op.create_table(
        "call_shapes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_call_shapes"),
        sa.UniqueConstraint("digest", name="uq_call_shapes_digest"),
    )
    op.create_table(
        "call_counts",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column(
            "shape_id",
            ID_TYPE,
            build_foreign_key("call_shapes", "fk_call_counts_shape_id"),
            nullable=False,
        ),
        sa.Column("user_id", ID_TYPE, build_foreign_key("users", "fk_call_counts_user_id")),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_call_counts_application_id"),
        ),
        sa.Column(
            "personal_token_id",
            ID_TYPE,
            build_foreign_key("personal_access_tokens", "fk_call_counts_personal_token_id"),
        ),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("first_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_address", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_call_counts"),
        sa.UniqueConstraint("digest", name="uq_call_counts_digest"),
    )
    op.create_index("ix_call_counts_application_id_day", "call_counts", ["application_id", "day"])
    op.create_index("ix_call_counts_day", "call_counts", ["day"])
    op.create_index("ix_call_counts_personal_token_id", "call_counts", ["personal_token_id"])
    op.create_index("ix_call_counts_shape_id_day", "call_counts", ["shape_id", "day"])
    op.create_index("ix_call_counts_user_id_day", "call_counts", ["user_id", "day"])
    op.create_table(
        "change_notices",
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_change_notices_user_id"),
            nullable=False,
        ),
        sa.Column("change_id", sa.String(100), nullable=False),
        sa.Column("told_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "change_id", name="pk_change_notices"),
    )
