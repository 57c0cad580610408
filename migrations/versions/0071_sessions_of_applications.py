"""Store allowed groups, token lifetimes, and sessions for back-channel logout."""

import sqlalchemy as sa
from alembic import op

revision = "0071"
down_revision = "0070"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OF_APPLICATIONS = (
    ("backchannel_logout_uri", sa.Text()),
    ("allowed_group_ids", sa.JSON(none_as_null=True)),
    ("refresh_idle_days", sa.SmallInteger()),
    ("refresh_longest_days", sa.SmallInteger()),
)
_OF_AUTHORIZATIONS = (("methods", sa.String(64)), ("sid", sa.String(64)))


def upgrade() -> None:
    """Upgrade the schema."""
    for name, kind in _OF_APPLICATIONS:
        op.add_column("applications", sa.Column(name, kind, nullable=True))
    for name, kind in _OF_AUTHORIZATIONS:
        op.add_column("authorizations", sa.Column(name, kind, nullable=True))
    op.create_table(
        "backchannel_sessions",
        sa.Column("id", BIG, nullable=False),
        sa.Column("application_id", BIG, nullable=False),
        sa.Column("sign_in_id", BIG, nullable=True),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("sid", sa.String(64), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tries", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(["application_id"], ["applications.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sign_in_id"], ["sign_ins.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("application_id", "sid"),
    )
    for column in ("sign_in_id", "user_id"):
        op.create_index(f"ix_backchannel_sessions_{column}", "backchannel_sessions", [column])
    is_over = sa.text("sign_in_id IS NULL")
    op.create_index(
        "ix_backchannel_sessions_due_at",
        "backchannel_sessions",
        ["due_at"],
        postgresql_where=is_over,
        sqlite_where=is_over,
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("backchannel_sessions")
    for name, _ in _OF_AUTHORIZATIONS:
        op.drop_column("authorizations", name)
    for name, _ in _OF_APPLICATIONS:
        op.drop_column("applications", name)
