"""Add devices, signing keys, overlapping client secrets and the moment of a refresh."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "device_authorizations",
        sa.Column("id", BIG, nullable=False),
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("device_code_digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("user_code_digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("interval", sa.SmallInteger(), nullable=False),
        sa.Column("last_polled_at", TIME),
        sa.Column("address", sa.String(length=64)),
        sa.Column("user_agent", sa.String(length=255)),
        sa.Column("user_id", BIG),
        sa.Column("auth_time", TIME),
        sa.Column("approved_at", TIME),
        sa.Column("denied_at", TIME),
        sa.Column("redeemed_at", TIME),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_device_authorizations_application_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name="fk_device_authorizations_user_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_device_authorizations"),
        sa.UniqueConstraint(
            "device_code_digest", name="uq_device_authorizations_device_code_digest"
        ),
        sa.UniqueConstraint("user_code_digest", name="uq_device_authorizations_user_code_digest"),
    )
    for column in ("application_id", "expires_at", "user_id"):
        name = f"ix_device_authorizations_{column}"
        op.create_index(name, "device_authorizations", [column])
    op.create_table(
        "signing_keys",
        sa.Column("id", BIG, nullable=False),
        sa.Column("kid", sa.String(length=64), nullable=False),
        sa.Column("public_jwk", sa.JSON(), nullable=False),
        sa.Column("private_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("retired_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_signing_keys"),
        sa.UniqueConstraint("kid", name="uq_signing_keys_kid"),
    )
    op.add_column("access_tokens", sa.Column("refreshed_at", TIME))
    op.add_column("application_secrets", sa.Column("expires_at", TIME))
    op.add_column("application_secrets", sa.Column("last_used_at", TIME))
    op.add_column(
        "applications",
        sa.Column("refresh_for_devices", sa.Boolean(), nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_column("applications", "refresh_for_devices")
    op.drop_column("application_secrets", "last_used_at")
    op.drop_column("application_secrets", "expires_at")
    op.drop_column("access_tokens", "refreshed_at")
    op.drop_table("signing_keys")
    op.drop_table("device_authorizations")
