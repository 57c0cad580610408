"""Count calls of the interfaces by day, consumer and shape."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "call_shapes",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("method", sa.String(length=16), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call_shapes")),
        sa.UniqueConstraint("digest", name=op.f("uq_call_shapes_digest")),
    )
    op.create_table(
        "call_counts",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("shape_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("application_id", ID, nullable=True),
        sa.Column("personal_token_id", ID, nullable=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("first_at", TIME, nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("last_address", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call_counts")),
        sa.UniqueConstraint("digest", name=op.f("uq_call_counts_digest")),
        *(
            sa.ForeignKeyConstraint(
                [column],
                [f"{table}.id"],
                name=op.f(f"fk_call_counts_{column}"),
                ondelete="CASCADE",
            )
            for column, table in (
                ("shape_id", "call_shapes"),
                ("user_id", "users"),
                ("application_id", "applications"),
                ("personal_token_id", "personal_access_tokens"),
            )
        ),
    )
    op.create_index(op.f("ix_call_counts_day"), "call_counts", ["day"])
    op.create_index(op.f("ix_call_counts_personal_token_id"), "call_counts", ["personal_token_id"])
    for column in ("shape_id", "user_id", "application_id"):
        op.create_index(f"ix_call_counts_{column}_day", "call_counts", [column, "day"])


def downgrade() -> None:
    """Go back."""
    op.drop_table("call_counts")
    op.drop_table("call_shapes")
