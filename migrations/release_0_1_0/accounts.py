"""Tables of accounts, groups, projects and members."""

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
        "attempt_counts",
        sa.Column("subject", sa.LargeBinary(32), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("window_ends_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("subject", name="pk_attempt_counts"),
    )
    op.create_index("ix_attempt_counts_window_ends_at", "attempt_counts", ["window_ends_at"])
    op.create_table(
        "users",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("username", sa.String(255), nullable=False),
        sa.Column("email", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("password_hash", sa.String(255), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_sign_in_at", TIMESTAMP_TYPE),
        sa.Column("password_changed_at", TIMESTAMP_TYPE),
        sa.Column("kind", sa.String(16), nullable=False, server_default="human"),
        sa.Column("must_change_password", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("username_key", sa.Text()),
        sa.Column("email_key", sa.Text()),
        sa.Column("name_key", sa.Text()),
        sa.Column("time_zone", sa.String(64), nullable=False, server_default="UTC"),
        sa.Column("page_size", sa.SmallInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
    )
    op.create_index("ix_users_kind_state_id", "users", ["kind", "state", "id"])
    op.create_index("uq_users_email_key", "users", ["email_key"], unique=True)
    op.create_index("uq_users_email_lower", "users", [sa.text("lower(email)")], unique=True)
    op.create_index("uq_users_username_key", "users", ["username_key"], unique=True)
    op.create_index("uq_users_username_lower", "users", [sa.text("lower(username)")], unique=True)
    op.create_table(
        "sign_ins",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("token_digest", sa.LargeBinary(32), nullable=False),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_sign_ins_user_id"), nullable=False
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("user_agent", sa.String(255)),
        sa.Column("methods", sa.String(64), nullable=False, server_default="pwd"),
        sa.PrimaryKeyConstraint("id", name="pk_sign_ins"),
        sa.UniqueConstraint("token_digest", name="uq_sign_ins_token_digest"),
    )
    op.create_index("ix_sign_ins_expires_at", "sign_ins", ["expires_at"])
    op.create_index("ix_sign_ins_user_id", "sign_ins", ["user_id"])
    op.create_table(
        "passkeys",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_passkeys_user_id"), nullable=False
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(1023), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("transports", sa.String(255), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_used_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_passkeys"),
        sa.UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
    )
    op.create_index("ix_passkeys_user_id", "passkeys", ["user_id"])
    op.create_table(
        "recovery_codes",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_recovery_codes_user_id"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("used_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_recovery_codes"),
    )
    op.create_index("ix_recovery_codes_user_id", "recovery_codes", ["user_id"])
    op.create_table(
        "totp_devices",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_totp_devices_user_id"),
            nullable=False,
        ),
        sa.Column("seed_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("confirmed_at", TIMESTAMP_TYPE),
        sa.Column("last_used_step", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_totp_devices"),
        sa.UniqueConstraint("user_id", name="uq_totp_devices_user_id"),
    )
    op.create_table(
        "groups",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("parent_id", ID_TYPE, build_foreign_key("groups", "fk_groups_parent_id")),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("path", sa.String(1024), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("path_key", sa.Text()),
        sa.Column("description", sa.Text(), nullable=False, server_default=""),
        sa.Column("deleted_at", TIMESTAMP_TYPE),
        sa.Column("name_key", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
    )
    op.create_index(
        "ix_groups_deleted_at",
        "groups",
        ["deleted_at"],
        **build_partial_index_options("deleted_at IS NOT NULL"),
    )
    op.create_index("ix_groups_parent_id", "groups", ["parent_id"])
    op.create_index("uq_groups_path_key", "groups", ["path_key"], unique=True)
    op.create_index("uq_groups_path_lower", "groups", [sa.text("lower(path)")], unique=True)
    op.create_table(
        "projects",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "group_id", ID_TYPE, build_foreign_key("groups", "fk_projects_group_id"), nullable=False
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("path", sa.String(1024), nullable=False),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("path_key", sa.Text()),
        sa.Column("description", sa.Text(), nullable=False, server_default=""),
        sa.Column("deleted_at", TIMESTAMP_TYPE),
        sa.Column("name_key", sa.Text()),
        sa.Column("archived_at", TIMESTAMP_TYPE),
        sa.Column("releases_access_level", sa.String(16), nullable=False, server_default="enabled"),
        sa.Column(
            "environments_access_level", sa.String(16), nullable=False, server_default="enabled"
        ),
        sa.Column(
            "feature_flags_access_level", sa.String(16), nullable=False, server_default="enabled"
        ),
        sa.Column(
            "infrastructure_access_level", sa.String(16), nullable=False, server_default="enabled"
        ),
        sa.Column("monitor_access_level", sa.String(16), nullable=False, server_default="enabled"),
        sa.Column(
            "limits_job_token_to_others", sa.Boolean(), nullable=False, server_default=sa.false()
        ),
        sa.Column(
            "limits_job_tokens_of_others", sa.Boolean(), nullable=False, server_default=sa.true()
        ),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
    )
    op.create_index(
        "ix_projects_deleted_at",
        "projects",
        ["deleted_at"],
        **build_partial_index_options("deleted_at IS NOT NULL"),
    )
    op.create_index("ix_projects_group_id_path_key", "projects", ["group_id", "path_key", "id"])
    op.create_index("ix_projects_group_id_visibility", "projects", ["group_id", "visibility"])
    op.create_index("uq_projects_path_key", "projects", ["path_key"], unique=True)
    op.create_index("uq_projects_path_lower", "projects", [sa.text("lower(path)")], unique=True)
    op.create_table(
        "member_roles",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("base_role", sa.SmallInteger(), nullable=False),
        sa.Column("abilities", sa.JSON(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("name_key", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_member_roles"),
        sa.UniqueConstraint("name_key", name="uq_member_roles_name_key"),
    )
    op.create_table(
        "members",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_members_user_id"), nullable=False
        ),
        sa.Column("group_id", ID_TYPE, build_foreign_key("groups", "fk_members_group_id")),
        sa.Column("project_id", ID_TYPE, build_foreign_key("projects", "fk_members_project_id")),
        sa.Column("role", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", sa.Date()),
        sa.Column(
            "member_role_id",
            ID_TYPE,
            build_foreign_key("member_roles", "fk_members_member_role_id", ondelete=None),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_members"),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)",
            name=op.f("ck_members_ck_members_one_place"),
        ),
        sa.UniqueConstraint("user_id", "group_id", name="uq_members_user_id_group_id"),
        sa.UniqueConstraint("user_id", "project_id", name="uq_members_user_id_project_id"),
    )
    op.create_index(
        "ix_members_expires_at",
        "members",
        ["expires_at"],
        **build_partial_index_options("expires_at IS NOT NULL"),
    )
    op.create_index("ix_members_group_id_user_id", "members", ["group_id", "user_id"])
    op.create_index("ix_members_member_role_id", "members", ["member_role_id"])
    op.create_index("ix_members_project_id_user_id", "members", ["project_id", "user_id"])
    op.create_table(
        "invitations",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("group_id", ID_TYPE, build_foreign_key("groups", "fk_invitations_group_id")),
        sa.Column(
            "project_id", ID_TYPE, build_foreign_key("projects", "fk_invitations_project_id")
        ),
        sa.Column("email", sa.String(255), nullable=False),
        sa.Column(
            "invited_by",
            ID_TYPE,
            build_foreign_key("users", "fk_invitations_invited_by"),
            nullable=False,
        ),
        sa.Column("role", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", sa.Date()),
        sa.Column("email_key", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)", name=op.f("ck_invitations_one_place")
        ),
        sa.UniqueConstraint("group_id", "email_key", name="uq_invitations_group_id_email_key"),
        sa.UniqueConstraint("project_id", "email_key", name="uq_invitations_project_id_email_key"),
    )
    op.create_index("ix_invitations_created_at", "invitations", ["created_at"])
    op.create_index("ix_invitations_invited_by", "invitations", ["invited_by"])
    op.create_table(
        "former_paths",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("path", sa.String(1024), nullable=False),
        sa.Column("path_key", sa.Text(), nullable=False),
        sa.Column("group_id", ID_TYPE, build_foreign_key("groups", "fk_former_paths_group_id")),
        sa.Column(
            "project_id", ID_TYPE, build_foreign_key("projects", "fk_former_paths_project_id")
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_former_paths"),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)",
            name=op.f("ck_former_paths_ck_former_paths_one_place"),
        ),
    )
    op.create_index("ix_former_paths_group_id", "former_paths", ["group_id"])
    op.create_index("ix_former_paths_project_id", "former_paths", ["project_id"])
    op.create_index("uq_former_paths_path_key", "former_paths", ["path_key"], unique=True)
    op.create_table(
        "idempotent_requests",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_idempotent_requests_user_id"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("response_ciphertext", sa.Text()),
        sa.Column("claimed_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_idempotent_requests"),
        sa.UniqueConstraint("digest", name="uq_idempotent_requests_digest"),
    )
    op.create_index("ix_idempotent_requests_claimed_at", "idempotent_requests", ["claimed_at"])
    op.create_index("ix_idempotent_requests_user_id", "idempotent_requests", ["user_id"])
