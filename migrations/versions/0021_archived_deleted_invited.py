"""Let projects be archived, projects and groups be deleted, roles end and be offered by mail."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_PARTS = ("releases", "environments", "feature_flags", "infrastructure", "monitor")
_IS_DELETED = sa.text("deleted_at IS NOT NULL")


def upgrade() -> None:
    """Go forward."""
    for table in ("groups", "projects"):
        op.add_column(table, sa.Column("description", sa.Text, server_default="", nullable=False))
        op.add_column(table, sa.Column("deleted_at", TIME))
        op.add_column(table, sa.Column("name_key", sa.Text))
        op.create_index(
            f"ix_{table}_deleted_at",
            table,
            ["deleted_at"],
            postgresql_where=_IS_DELETED,
            sqlite_where=_IS_DELETED,
        )
    op.add_column("projects", sa.Column("archived_at", TIME))
    for part in _PARTS:
        level = sa.Column(
            f"{part}_access_level", sa.String(16), server_default="enabled", nullable=False
        )
        op.add_column("projects", level)
    op.add_column("members", sa.Column("expires_at", sa.Date))
    op.create_index("ix_members_expires_at", "members", ["expires_at"])
    _create_invitations()


def _create_invitations() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", ID, nullable=False),
        sa.Column("group_id", ID),
        sa.Column("project_id", ID),
        sa.Column("email", sa.String(255), nullable=False),
        sa.Column("invited_by", ID, nullable=False),
        sa.Column("role", sa.SmallInteger, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", sa.Date),
        sa.Column("email_key", sa.Text),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)", name=op.f("ck_invitations_one_place")
        ),
        _foreign_key("group_id", "groups"),
        _foreign_key("project_id", "projects"),
        _foreign_key("invited_by", "users"),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("group_id", "email_key", name="uq_invitations_group_id_email_key"),
        sa.UniqueConstraint("project_id", "email_key", name="uq_invitations_project_id_email_key"),
    )
    op.create_index("ix_invitations_created_at", "invitations", ["created_at"])
    op.create_index("ix_invitations_invited_by", "invitations", ["invited_by"])


def _foreign_key(column: str, table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{table}.id"], name=f"fk_invitations_{column}", ondelete="CASCADE"
    )


def downgrade() -> None:
    """Go back."""
    op.drop_table("invitations")
    op.drop_index("ix_members_expires_at", table_name="members")
    op.drop_column("members", "expires_at")
    for part in _PARTS:
        op.drop_column("projects", f"{part}_access_level")
    op.drop_column("projects", "archived_at")
    for table in ("groups", "projects"):
        op.drop_index(f"ix_{table}_deleted_at", table_name=table)
        op.drop_column(table, "name_key")
        op.drop_column(table, "deleted_at")
        op.drop_column(table, "description")
