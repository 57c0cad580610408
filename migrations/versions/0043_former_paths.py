"""Keep the former paths of groups and projects, so that URLs with them still lead there."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_HOLDERS = ("group", "project")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "former_paths",
        sa.Column("id", ID, nullable=False),
        sa.Column("path", sa.String(1024), nullable=False),
        sa.Column("path_key", sa.Text, nullable=False),
        *(sa.Column(f"{holder}_id", ID) for holder in _HOLDERS),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)", name="ck_former_paths_one_place"
        ),
        *(
            sa.ForeignKeyConstraint(
                [f"{holder}_id"],
                [f"{holder}s.id"],
                name=f"fk_former_paths_{holder}_id",
                ondelete="CASCADE",
            )
            for holder in _HOLDERS
        ),
        sa.PrimaryKeyConstraint("id", name="pk_former_paths"),
    )
    op.create_index("uq_former_paths_path_key", "former_paths", ["path_key"], unique=True)
    for holder in _HOLDERS:
        op.create_index(f"ix_former_paths_{holder}_id", "former_paths", [f"{holder}_id"])


def downgrade() -> None:
    """Go back."""
    op.drop_table("former_paths")
