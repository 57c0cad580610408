"""Tables of OAuth applications, grants and tokens."""

import sqlalchemy as sa
from alembic import op

from migrations.release_0_1_0.columns import ID_TYPE, TIMESTAMP_TYPE, build_foreign_key


def create_tables() -> None:
    """Create the tables and their indexes."""
    op.create_table(
        "signing_keys",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("kid", sa.String(64), nullable=False),
        sa.Column("public_jwk", sa.JSON(), nullable=False),
        sa.Column("private_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("retired_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_signing_keys"),
        sa.UniqueConstraint("kid", name="uq_signing_keys_kid"),
    )
    op.create_table(
        "applications",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column(
            "owner_id",
            ID_TYPE,
            build_foreign_key("users", "fk_applications_owner_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("redirect_uris", sa.JSON(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("confidential", sa.Boolean(), nullable=False),
        sa.Column("require_pkce", sa.Boolean(), nullable=False),
        sa.Column("trusted", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("last_used_at", TIMESTAMP_TYPE),
        sa.Column("refresh_for_devices", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("is_instance_wide", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("client_metadata", sa.JSON()),
        sa.Column("registration_digest", sa.LargeBinary(32)),
        sa.Column("require_dpop", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("keyed_at", TIMESTAMP_TYPE),
        sa.Column("name_key", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_applications"),
        sa.UniqueConstraint("uid", name="uq_applications_uid"),
    )
    op.create_index("ix_applications_owner_id", "applications", ["owner_id"])
    op.create_index(
        "ix_applications_registration_digest", "applications", ["registration_digest"], unique=True
    )
    op.create_table(
        "application_secrets",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_application_secrets_application_id"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE),
        sa.Column("last_used_at", TIMESTAMP_TYPE),
        sa.Column("keyed_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_application_secrets"),
    )
    op.create_index(
        "ix_application_secrets_application_id", "application_secrets", ["application_id"]
    )
    op.create_table(
        "authorizations",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_authorizations_application_id"),
            nullable=False,
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_authorizations_user_id"),
            nullable=False,
        ),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text()),
        sa.Column("code_challenge", sa.String(128)),
        sa.Column("nonce", sa.Text()),
        sa.Column("auth_time", TIMESTAMP_TYPE, nullable=False),
        sa.Column("code_digest", sa.LargeBinary(32)),
        sa.Column("code_expires_at", TIMESTAMP_TYPE),
        sa.Column("code_used_at", TIMESTAMP_TYPE),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("revoked_at", TIMESTAMP_TYPE),
        sa.Column("key_thumbprint", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_authorizations"),
        sa.UniqueConstraint("code_digest", name="uq_authorizations_code_digest"),
    )
    op.create_index("ix_authorizations_application_id", "authorizations", ["application_id"])
    op.create_index("ix_authorizations_code_expires_at", "authorizations", ["code_expires_at"])
    op.create_index("ix_authorizations_user_id", "authorizations", ["user_id"])
    op.create_table(
        "consents",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_consents_user_id"), nullable=False
        ),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_consents_application_id"),
            nullable=False,
        ),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_consents"),
        sa.UniqueConstraint("user_id", "application_id", name="uq_consents_user_id_application_id"),
    )
    op.create_index("ix_consents_application_id", "consents", ["application_id"])
    op.create_table(
        "personal_access_tokens",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_personal_access_tokens_user_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("revoked_at", TIMESTAMP_TYPE),
        sa.Column("last_used_at", TIMESTAMP_TYPE),
        sa.Column("last_used_address", sa.String(64)),
        sa.Column("description", sa.Text(), nullable=False, server_default=sa.text("('')")),
        sa.Column("family_id", sa.BigInteger()),
        sa.Column("keyed_at", TIMESTAMP_TYPE),
        sa.Column("name_key", sa.Text()),
        sa.Column(
            "authorization_id",
            ID_TYPE,
            build_foreign_key("authorizations", "fk_personal_access_tokens_authorization_id"),
        ),
        sa.Column("key_thumbprint", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_personal_access_tokens"),
        sa.UniqueConstraint("digest", name="uq_personal_access_tokens_digest"),
    )
    op.create_index(
        "ix_personal_access_tokens_authorization_id", "personal_access_tokens", ["authorization_id"]
    )
    op.create_index("ix_personal_access_tokens_family_id", "personal_access_tokens", ["family_id"])
    op.create_index("ix_personal_access_tokens_user_id", "personal_access_tokens", ["user_id"])
    op.create_table(
        "bots",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_bots_user_id"), nullable=False
        ),
        sa.Column("group_id", ID_TYPE, build_foreign_key("groups", "fk_bots_group_id")),
        sa.Column("project_id", ID_TYPE, build_foreign_key("projects", "fk_bots_project_id")),
        sa.PrimaryKeyConstraint("id", name="pk_bots"),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)", name=op.f("ck_bots_ck_bots_one_place")
        ),
        sa.UniqueConstraint("user_id", name="uq_bots_user_id"),
    )
    op.create_index("ix_bots_group_id", "bots", ["group_id"])
    op.create_index("ix_bots_project_id", "bots", ["project_id"])
    op.create_table(
        "access_tokens",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "authorization_id",
            ID_TYPE,
            build_foreign_key("authorizations", "fk_access_tokens_authorization_id"),
        ),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_access_tokens_application_id"),
        ),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_access_tokens_user_id"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("refresh_digest", sa.LargeBinary(32)),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE),
        sa.Column("revoked_at", TIMESTAMP_TYPE),
        sa.Column("refreshed_at", TIMESTAMP_TYPE),
        sa.Column("address", sa.String(64)),
        sa.Column("user_agent", sa.String(255)),
        sa.Column("last_used_at", TIMESTAMP_TYPE),
        sa.Column("last_used_address", sa.String(64)),
        sa.Column("key_thumbprint", sa.String(64)),
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
        "token_refusals",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_token_refusals_application_id"),
            nullable=False,
        ),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("error", sa.String(64), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("refused_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("user_agent", sa.String(255)),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("redirect_uri", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_token_refusals"),
    )
    op.create_index(
        "ix_token_refusals_application_id_reason_id",
        "token_refusals",
        ["application_id", "reason", "id"],
    )
    op.create_index("ix_token_refusals_refused_at", "token_refusals", ["refused_at"])
    op.create_table(
        "device_authorizations",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_device_authorizations_application_id"),
            nullable=False,
        ),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("device_code_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("user_code_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("interval", sa.SmallInteger(), nullable=False),
        sa.Column("last_polled_at", TIMESTAMP_TYPE),
        sa.Column("address", sa.String(64)),
        sa.Column("user_agent", sa.String(255)),
        sa.Column(
            "user_id", ID_TYPE, build_foreign_key("users", "fk_device_authorizations_user_id")
        ),
        sa.Column("auth_time", TIMESTAMP_TYPE),
        sa.Column("approved_at", TIMESTAMP_TYPE),
        sa.Column("denied_at", TIMESTAMP_TYPE),
        sa.Column("redeemed_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_device_authorizations"),
        sa.UniqueConstraint(
            "device_code_digest", name="uq_device_authorizations_device_code_digest"
        ),
        sa.UniqueConstraint("user_code_digest", name="uq_device_authorizations_user_code_digest"),
    )
    op.create_index(
        "ix_device_authorizations_application_id", "device_authorizations", ["application_id"]
    )
    op.create_index("ix_device_authorizations_expires_at", "device_authorizations", ["expires_at"])
    op.create_index("ix_device_authorizations_user_id", "device_authorizations", ["user_id"])
    op.create_table(
        "pushed_requests",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column(
            "application_id",
            ID_TYPE,
            build_foreign_key("applications", "fk_pushed_requests_application_id"),
            nullable=False,
        ),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pushed_requests"),
        sa.UniqueConstraint("digest", name="uq_pushed_requests_digest"),
    )
    op.create_index("ix_pushed_requests_application_id", "pushed_requests", ["application_id"])
    op.create_index("ix_pushed_requests_expires_at", "pushed_requests", ["expires_at"])
    op.create_table(
        "seen_proofs",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("expires_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_seen_proofs"),
    )
    op.create_index("ix_seen_proofs_expires_at", "seen_proofs", ["expires_at"])
