"""Let users request shift swaps."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0120"
down_revision = "0119"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "on_call_swap_requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "schedule_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("starts_at", UTCDateTime(), nullable=False),
        sa.Column("ends_at", UTCDateTime(), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column(
            "other_user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("other_starts_at", UTCDateTime(), nullable=False),
        sa.Column("other_ends_at", UTCDateTime(), nullable=False),
        sa.Column("other_seconds", sa.Integer(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("state", sa.String(length=9), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("answered_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["other_user_id"],
            ["users.id"],
            name=op.f("fk_on_call_swap_requests_other_user_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["on_call_schedules.id"],
            name=op.f("fk_on_call_swap_requests_schedule_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_on_call_swap_requests_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_on_call_swap_requests")),
    )
    op.create_index(
        op.f("ix_on_call_swap_requests_expires_at"),
        "on_call_swap_requests",
        ["expires_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_on_call_swap_requests_other_user_id"),
        "on_call_swap_requests",
        ["other_user_id"],
        unique=False,
    )
    op.create_index(
        "ix_on_call_swap_requests_schedule_id_expires_at",
        "on_call_swap_requests",
        ["schedule_id", "expires_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_on_call_swap_requests_user_id"), "on_call_swap_requests", ["user_id"], unique=False
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index(op.f("ix_on_call_swap_requests_user_id"), table_name="on_call_swap_requests")
    op.drop_index(
        "ix_on_call_swap_requests_schedule_id_expires_at", table_name="on_call_swap_requests"
    )
    op.drop_index(
        op.f("ix_on_call_swap_requests_other_user_id"), table_name="on_call_swap_requests"
    )
    op.drop_index(op.f("ix_on_call_swap_requests_expires_at"), table_name="on_call_swap_requests")
    op.drop_table("on_call_swap_requests")
