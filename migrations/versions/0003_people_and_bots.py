"""Add second factors, audit events, letters, bots and where tokens are used."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go forward."""
    _add_letters_and_events()
    _add_second_factors()
    _add_bots()
    _add_columns()


def _add_letters_and_events() -> None:
    op.create_table(
        "mails",
        sa.Column("id", BIG, nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("recipient", sa.String(length=255), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("next_try_at", TIME),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("last_error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_mails"),
        sa.UniqueConstraint("key", name="uq_mails_key"),
    )
    op.create_index("ix_mails_next_try_at", "mails", ["next_try_at"])
    op.create_table(
        "audit_events",
        sa.Column("id", BIG, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("actor_id", BIG),
        sa.Column("actor_name", sa.String(length=255), nullable=False),
        sa.Column("user_id", BIG),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("address", sa.String(length=64)),
        sa.Column("user_agent", sa.String(length=255)),
        sa.Column("request_id", sa.String(length=64)),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["users.id"], name="fk_audit_events_actor_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_audit_events_user_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
    )
    op.create_index("ix_audit_events_actor_id_id", "audit_events", ["actor_id", "id"])
    op.create_index("ix_audit_events_created_at", "audit_events", ["created_at"])
    op.create_index("ix_audit_events_kind_id", "audit_events", ["kind", "id"])
    op.create_index("ix_audit_events_user_id_id", "audit_events", ["user_id", "id"])


def _add_second_factors() -> None:
    op.create_table(
        "passkeys",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(length=1023), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("transports", sa.String(length=255), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_passkeys_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_passkeys"),
        sa.UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
    )
    op.create_index("ix_passkeys_user_id", "passkeys", ["user_id"])
    op.create_table(
        "recovery_codes",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_recovery_codes_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_recovery_codes"),
    )
    op.create_index("ix_recovery_codes_user_id", "recovery_codes", ["user_id"])
    op.create_table(
        "totp_devices",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("seed_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("confirmed_at", TIME),
        sa.Column("last_used_step", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_totp_devices_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_totp_devices"),
        sa.UniqueConstraint("user_id", name="uq_totp_devices_user_id"),
    )


def _add_bots() -> None:
    op.create_table(
        "bots",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("group_id", BIG),
        sa.Column("project_id", BIG),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_bots_user_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name="fk_bots_group_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_bots_project_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="ck_bots_one_place"),
        sa.PrimaryKeyConstraint("id", name="pk_bots"),
        sa.UniqueConstraint("user_id", name="uq_bots_user_id"),
    )
    op.create_index("ix_bots_group_id", "bots", ["group_id"])
    op.create_index("ix_bots_project_id", "bots", ["project_id"])


def _add_columns() -> None:
    op.add_column("access_tokens", sa.Column("address", sa.String(length=64)))
    op.add_column("access_tokens", sa.Column("user_agent", sa.String(length=255)))
    op.add_column("access_tokens", sa.Column("last_used_at", TIME))
    op.add_column("access_tokens", sa.Column("last_used_address", sa.String(length=64)))
    op.add_column(
        "applications",
        sa.Column("is_instance_wide", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("personal_access_tokens", sa.Column("last_used_address", sa.String(length=64)))
    op.add_column(
        "personal_access_tokens",
        sa.Column("description", sa.Text(), nullable=False, server_default=""),
    )
    op.add_column("personal_access_tokens", sa.Column("family_id", sa.BigInteger()))
    op.create_index("ix_personal_access_tokens_family_id", "personal_access_tokens", ["family_id"])
    op.add_column(
        "sign_ins", sa.Column("methods", sa.String(length=64), nullable=False, server_default="pwd")
    )
    op.add_column(
        "users", sa.Column("kind", sa.String(length=16), nullable=False, server_default="human")
    )
    op.add_column(
        "users",
        sa.Column("must_change_password", sa.Boolean(), nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_column("users", "must_change_password")
    op.drop_column("users", "kind")
    op.drop_column("sign_ins", "methods")
    op.drop_index("ix_personal_access_tokens_family_id", "personal_access_tokens")
    op.drop_column("personal_access_tokens", "family_id")
    op.drop_column("personal_access_tokens", "description")
    op.drop_column("personal_access_tokens", "last_used_address")
    op.drop_column("applications", "is_instance_wide")
    op.drop_column("access_tokens", "last_used_address")
    op.drop_column("access_tokens", "last_used_at")
    op.drop_column("access_tokens", "user_agent")
    op.drop_column("access_tokens", "address")
    op.drop_table("bots")
    op.drop_table("totp_devices")
    op.drop_table("recovery_codes")
    op.drop_table("passkeys")
    op.drop_table("audit_events")
    op.drop_table("mails")
