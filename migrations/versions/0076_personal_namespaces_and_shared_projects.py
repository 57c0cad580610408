"""Add personal namespaces, and let projects be shared with groups."""

import sqlalchemy as sa
from alembic import op

revision = "0076"
down_revision = "0075"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    # A single statement works on SQLite as well.
    op.execute(
        "ALTER TABLE groups ADD COLUMN owner_id BIGINT"
        " CONSTRAINT fk_groups_owner_id REFERENCES users (id)"
        if op.get_bind().dialect.name == "postgresql"
        else "ALTER TABLE groups ADD COLUMN owner_id INTEGER"
        " CONSTRAINT fk_groups_owner_id REFERENCES users (id)"
    )
    op.create_table(
        "project_shares",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("group_id", BIG, nullable=False),
        sa.Column("role", sa.SmallInteger(), nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_shares_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name="fk_project_shares_group_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_project_shares"),
        sa.UniqueConstraint("project_id", "group_id", name="uq_project_shares_project_id_group_id"),
    )
    op.create_index("ix_project_shares_group_id", "project_shares", ["group_id"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("project_shares")
    op.drop_column("groups", "owner_id")
