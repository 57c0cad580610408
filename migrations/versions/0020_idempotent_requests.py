"""Keep requests that carried an Idempotency-Key, with their responses, for a day."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "idempotent_requests",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("response_ciphertext", sa.Text),
        sa.Column("claimed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotent_requests")),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_idempotent_requests_user_id"),
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("digest", name=op.f("uq_idempotent_requests_digest")),
    )
    op.create_index(op.f("ix_idempotent_requests_user_id"), "idempotent_requests", ["user_id"])
    op.create_index(
        op.f("ix_idempotent_requests_claimed_at"), "idempotent_requests", ["claimed_at"]
    )


def downgrade() -> None:
    """Go back."""
    op.drop_table("idempotent_requests")
