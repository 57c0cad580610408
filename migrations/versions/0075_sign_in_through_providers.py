"""Let users sign in through identity providers."""

import sqlalchemy as sa
from alembic import op

revision = "0075"
down_revision = "0074"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "identity_providers",
        sa.Column("id", BIG, nullable=False),
        sa.Column("slug", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(length=255), nullable=False),
        sa.Column("preset", sa.String(length=32), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("client_secret_ciphertext", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("creates_accounts", sa.Boolean(), nullable=False),
        sa.Column("email_domains", sa.JSON(), nullable=False),
        sa.Column("vouches_for_email", sa.Boolean(), nullable=False),
        sa.Column("trusts_second_factor", sa.Boolean(), nullable=False),
        sa.Column("groups_claim", sa.String(length=255), nullable=False),
        sa.Column("group_roles", sa.JSON(), nullable=False),
        sa.Column("administrators_group", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_providers")),
        sa.UniqueConstraint("slug", name=op.f("uq_identity_providers_slug")),
    )
    op.create_table(
        "identities",
        sa.Column("id", BIG, nullable=False),
        sa.Column("provider_id", BIG, nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("email", sa.String(length=255), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.Column("refresh_token_ciphertext", sa.Text(), nullable=True),
        sa.Column("checked_at", TIME, nullable=True),
        sa.Column("gave_administrator", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["identity_providers.id"],
            name=op.f("fk_identities_provider_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_identities_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identities")),
        sa.UniqueConstraint(
            "provider_id", "subject", name=op.f("uq_identities_provider_id_subject")
        ),
        sa.UniqueConstraint(
            "user_id", "provider_id", name=op.f("uq_identities_user_id_provider_id")
        ),
    )
    op.create_index(
        "ix_identities_checked_at",
        "identities",
        ["checked_at"],
        unique=False,
        postgresql_where=sa.text("refresh_token_ciphertext IS NOT NULL"),
        sqlite_where=sa.text("refresh_token_ciphertext IS NOT NULL"),
    )
    op.create_table(
        "identity_roles",
        sa.Column("identity_id", BIG, autoincrement=False, nullable=False),
        sa.Column("group_id", BIG, autoincrement=False, nullable=False),
        sa.Column("role", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_identity_roles_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["identity_id"],
            ["identities.id"],
            name=op.f("fk_identity_roles_identity_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("identity_id", "group_id", name=op.f("pk_identity_roles")),
    )
    op.create_index(
        op.f("ix_identity_roles_group_id"), "identity_roles", ["group_id"], unique=False
    )
    op.add_column("sign_ins", sa.Column("identity_id", sa.BigInteger(), nullable=True))
    op.add_column(
        "sign_ins", sa.Column("is_proof", sa.Boolean(), server_default=sa.true(), nullable=False)
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("sign_ins", "is_proof")
    op.drop_column("sign_ins", "identity_id")
    op.drop_index(op.f("ix_identity_roles_group_id"), table_name="identity_roles")
    op.drop_table("identity_roles")
    op.drop_index(
        "ix_identities_checked_at",
        table_name="identities",
        postgresql_where=sa.text("refresh_token_ciphertext IS NOT NULL"),
        sqlite_where=sa.text("refresh_token_ciphertext IS NOT NULL"),
    )
    op.drop_table("identities")
    op.drop_table("identity_providers")
