"""Begin with accounts, projects, applications, tokens and alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
OPEN = sa.text("fingerprint IS NOT NULL AND status <> 'resolved'")


def upgrade() -> None:  # noqa: PLR0915 - every table of the beginning
    """Go forward."""
    op.create_table(
        "attempt_counts",
        sa.Column("subject", sa.LargeBinary(length=32), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("window_ends_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("subject", name="pk_attempt_counts"),
    )
    op.create_index("ix_attempt_counts_window_ends_at", "attempt_counts", ["window_ends_at"])
    op.create_table(
        "groups",
        sa.Column("id", BIG, nullable=False),
        sa.Column("parent_id", BIG, nullable=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("path", sa.String(length=1024), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["groups.id"], name="fk_groups_parent_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
    )
    op.create_index("uq_groups_path_lower", "groups", [sa.text("lower(path)")], unique=True)
    op.create_index("ix_groups_parent_id", "groups", ["parent_id"])
    op.create_table(
        "instance_settings",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_instance_settings"),
    )
    op.create_table(
        "users",
        sa.Column("id", BIG, nullable=False),
        sa.Column("username", sa.String(length=255), nullable=False),
        sa.Column("email", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_sign_in_at", TIME, nullable=True),
        sa.Column("password_changed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
    )
    op.create_index("uq_users_email_lower", "users", [sa.text("lower(email)")], unique=True)
    op.create_index("uq_users_username_lower", "users", [sa.text("lower(username)")], unique=True)
    op.create_table(
        "applications",
        sa.Column("id", BIG, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("owner_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("redirect_uris", sa.JSON(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("confidential", sa.Boolean(), nullable=False),
        sa.Column("require_pkce", sa.Boolean(), nullable=False),
        sa.Column("trusted", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name="fk_applications_owner_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_applications"),
        sa.UniqueConstraint("uid", name="uq_applications_uid"),
    )
    op.create_index("ix_applications_owner_id", "applications", ["owner_id"])
    op.create_table(
        "personal_access_tokens",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_personal_access_tokens_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_personal_access_tokens"),
        sa.UniqueConstraint("digest", name="uq_personal_access_tokens_digest"),
    )
    op.create_index("ix_personal_access_tokens_user_id", "personal_access_tokens", ["user_id"])
    op.create_table(
        "projects",
        sa.Column("id", BIG, nullable=False),
        sa.Column("group_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("path", sa.String(length=1024), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name="fk_projects_group_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
    )
    op.create_index("uq_projects_path_lower", "projects", [sa.text("lower(path)")], unique=True)
    op.create_index("ix_projects_group_id", "projects", ["group_id"])
    op.create_table(
        "sign_ins",
        sa.Column("id", BIG, nullable=False),
        sa.Column("token_digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("user_agent", sa.String(length=255), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_sign_ins_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sign_ins"),
        sa.UniqueConstraint("token_digest", name="uq_sign_ins_token_digest"),
    )
    op.create_index("ix_sign_ins_expires_at", "sign_ins", ["expires_at"])
    op.create_index("ix_sign_ins_user_id", "sign_ins", ["user_id"])
    op.create_table(
        "alert_counters",
        sa.Column("project_id", BIG, autoincrement=False, nullable=False),
        sa.Column("last_iid", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_alert_counters_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", name="pk_alert_counters"),
    )
    op.create_table(
        "application_secrets",
        sa.Column("id", BIG, nullable=False),
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_application_secrets_application_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_application_secrets"),
    )
    op.create_index(
        "ix_application_secrets_application_id", "application_secrets", ["application_id"]
    )
    op.create_table(
        "authorizations",
        sa.Column("id", BIG, nullable=False),
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=True),
        sa.Column("code_challenge", sa.String(length=128), nullable=True),
        sa.Column("nonce", sa.Text(), nullable=True),
        sa.Column("auth_time", TIME, nullable=False),
        sa.Column("code_digest", sa.LargeBinary(length=32), nullable=True),
        sa.Column("code_expires_at", TIME, nullable=True),
        sa.Column("code_used_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_authorizations_application_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_authorizations_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_authorizations"),
        sa.UniqueConstraint("code_digest", name="uq_authorizations_code_digest"),
    )
    op.create_index("ix_authorizations_application_id", "authorizations", ["application_id"])
    op.create_index("ix_authorizations_code_expires_at", "authorizations", ["code_expires_at"])
    op.create_index("ix_authorizations_user_id", "authorizations", ["user_id"])
    op.create_table(
        "consents",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_consents_application_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_consents_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_consents"),
        sa.UniqueConstraint("user_id", "application_id", name="uq_consents_user_id_application_id"),
    )
    op.create_index("ix_consents_application_id", "consents", ["application_id"])
    op.create_table(
        "integrations",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("endpoint_identifier", sa.String(length=32), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("key_ciphertext", sa.Text(), nullable=False),
        sa.Column("key_last_used_at", TIME, nullable=True),
        sa.Column("previous_key_digest", sa.LargeBinary(length=32), nullable=True),
        sa.Column("previous_key_expires_at", TIME, nullable=True),
        sa.Column("previous_key_last_used_at", TIME, nullable=True),
        sa.Column("api_url", sa.Text(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_integrations_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_integrations"),
        sa.UniqueConstraint("endpoint_identifier", name="uq_integrations_endpoint_identifier"),
    )
    op.create_index(
        "ix_integrations_project_id_type_id", "integrations", ["project_id", "type", "id"]
    )
    op.create_table(
        "members",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("group_id", BIG, nullable=True),
        sa.Column("project_id", BIG, nullable=True),
        sa.Column("role", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)", name="ck_members_one_place"
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name="fk_members_group_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_members_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_members_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_members"),
        sa.UniqueConstraint("user_id", "group_id", name="uq_members_user_id_group_id"),
        sa.UniqueConstraint("user_id", "project_id", name="uq_members_user_id_project_id"),
    )
    op.create_index("ix_members_group_id", "members", ["group_id"])
    op.create_index("ix_members_project_id", "members", ["project_id"])
    op.create_table(
        "access_tokens",
        sa.Column("id", BIG, nullable=False),
        sa.Column("authorization_id", BIG, nullable=True),
        sa.Column("application_id", BIG, nullable=True),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("refresh_digest", sa.LargeBinary(length=32), nullable=True),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_access_tokens_application_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["authorization_id"],
            ["authorizations.id"],
            name="fk_access_tokens_authorization_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_access_tokens_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_access_tokens"),
        sa.UniqueConstraint("digest", name="uq_access_tokens_digest"),
        sa.UniqueConstraint("refresh_digest", name="uq_access_tokens_refresh_digest"),
    )
    op.create_index("ix_access_tokens_application_id", "access_tokens", ["application_id"])
    op.create_index("ix_access_tokens_authorization_id", "access_tokens", ["authorization_id"])
    op.create_index("ix_access_tokens_expires_at", "access_tokens", ["expires_at"])
    op.create_index("ix_access_tokens_revoked_at", "access_tokens", ["revoked_at"])
    op.create_index("ix_access_tokens_user_id", "access_tokens", ["user_id"])
    op.create_table(
        "deliveries",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("integration_id", BIG, nullable=True),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("is_test", sa.Boolean(), nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("status_code", sa.SmallInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("sender", sa.String(length=64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("opened", sa.Integer(), nullable=False),
        sa.Column("joined", sa.Integer(), nullable=False),
        sa.Column("resolved", sa.Integer(), nullable=False),
        sa.Column("remarks", sa.JSON(), nullable=False),
        sa.Column("truncated_alerts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["integration_id"],
            ["integrations.id"],
            name="fk_deliveries_integration_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_deliveries_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_integration_id_id", "deliveries", ["integration_id", "id"])
    op.create_index("ix_deliveries_project_id", "deliveries", ["project_id"])
    op.create_table(
        "alerts",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("iid", sa.Integer(), nullable=False),
        sa.Column("integration_id", BIG, nullable=True),
        sa.Column("delivery_id", BIG, nullable=True),
        sa.Column("item_index", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(length=32), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("description", sa.String(length=1000), nullable=True),
        sa.Column("service", sa.String(length=100), nullable=True),
        sa.Column("monitoring_tool", sa.String(length=100), nullable=True),
        sa.Column("hosts", sa.Text(), nullable=False),
        sa.Column("environment", sa.String(length=255), nullable=True),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("last_event_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["deliveries.id"], name="fk_alerts_delivery_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["integration_id"],
            ["integrations.id"],
            name="fk_alerts_integration_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_alerts_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
    )
    op.create_index("ix_alerts_delivery_id", "alerts", ["delivery_id"])
    op.create_index("ix_alerts_integration_id", "alerts", ["integration_id"])
    op.create_index(
        "ix_alerts_project_id_fingerprint_id", "alerts", ["project_id", "fingerprint", "id"]
    )
    op.create_index("ix_alerts_project_id_status_id", "alerts", ["project_id", "status", "id"])
    op.create_index(
        "uq_alerts_open_fingerprint",
        "alerts",
        ["project_id", "fingerprint"],
        unique=True,
        postgresql_where=OPEN,
        sqlite_where=OPEN,
    )
    op.create_index("uq_alerts_project_id_iid", "alerts", ["project_id", "iid"], unique=True)


def downgrade() -> None:
    """Go back to nothing."""
    for table in (
        "alerts",
        "deliveries",
        "access_tokens",
        "members",
        "integrations",
        "consents",
        "authorizations",
        "application_secrets",
        "alert_counters",
        "sign_ins",
        "projects",
        "personal_access_tokens",
        "applications",
        "users",
        "instance_settings",
        "groups",
        "attempt_counts",
    ):
        op.drop_table(table)
