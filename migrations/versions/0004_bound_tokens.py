"""Add pushed requests, tokens bound to keys and clients that register themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "seen_proofs",
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_seen_proofs"),
    )
    op.create_index("ix_seen_proofs_expires_at", "seen_proofs", ["expires_at"])
    op.create_table(
        "pushed_requests",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"],
            ["applications.id"],
            name="fk_pushed_requests_application_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pushed_requests"),
        sa.UniqueConstraint("digest", name="uq_pushed_requests_digest"),
    )
    op.create_index("ix_pushed_requests_application_id", "pushed_requests", ["application_id"])
    op.create_index("ix_pushed_requests_expires_at", "pushed_requests", ["expires_at"])
    op.add_column("access_tokens", sa.Column("key_thumbprint", sa.String(length=64)))
    op.add_column("applications", sa.Column("client_metadata", sa.JSON()))
    op.add_column("applications", sa.Column("registration_digest", sa.LargeBinary(length=32)))
    op.create_index(
        "ix_applications_registration_digest", "applications", ["registration_digest"], unique=True
    )
    op.add_column(
        "applications",
        sa.Column("require_dpop", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("authorizations", sa.Column("key_thumbprint", sa.String(length=64)))


def downgrade() -> None:
    """Go back."""
    op.drop_column("authorizations", "key_thumbprint")
    op.drop_column("applications", "require_dpop")
    op.drop_index("ix_applications_registration_digest", "applications")
    op.drop_column("applications", "registration_digest")
    op.drop_column("applications", "client_metadata")
    op.drop_column("access_tokens", "key_thumbprint")
    op.drop_index("ix_pushed_requests_expires_at", "pushed_requests")
    op.drop_index("ix_pushed_requests_application_id", "pushed_requests")
    op.drop_table("pushed_requests")
    op.drop_index("ix_seen_proofs_expires_at", "seen_proofs")
    op.drop_table("seen_proofs")
