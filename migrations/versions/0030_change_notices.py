"""Remember who was told by mail of which change of the release schedule."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "change_notices",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("change_id", sa.String(length=100), nullable=False),
        sa.Column("told_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "change_id", name=op.f("pk_change_notices")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_change_notices_user_id"), ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_table("change_notices")
