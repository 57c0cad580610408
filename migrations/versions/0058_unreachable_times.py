"""Store when web servers receive requests, and the periods in which none did."""

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "web_servers",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_web_servers"),
    )
    op.create_table(
        "unreachable_times",
        sa.Column("id", ID, nullable=False),
        sa.Column("began_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_unreachable_times"),
    )
    op.create_index("ix_unreachable_times_ended_at", "unreachable_times", ["ended_at"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("unreachable_times")
    op.drop_table("web_servers")
