"""Know the gaps of the policies of groups, beside those of projects."""

import sqlalchemy as sa
from alembic import op

revision = "0096"
down_revision = "0079"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go forward."""
    known = _rows()
    op.drop_table("known_gaps")
    table = op.create_table(
        "known_gaps",
        sa.Column("gaps", sa.JSON(), nullable=False),
        sa.Column("project_id", BIG, nullable=True),
        sa.Column("group_id", BIG, nullable=True),
        sa.Column("id", BIG, nullable=False),
        sa.CheckConstraint(
            "(group_id IS NULL) <> (project_id IS NULL)", name="ck_known_gaps_one_holder"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_known_gaps_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name="fk_known_gaps_group_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_known_gaps"),
    )
    op.create_index("uq_known_gaps_project_id", "known_gaps", ["project_id"], unique=True)
    op.create_index("uq_known_gaps_group_id", "known_gaps", ["group_id"], unique=True)
    op.bulk_insert(table, known)


def downgrade() -> None:
    """Go back: those of groups are forgotten."""
    known = [row for row in _rows() if row["project_id"] is not None]
    op.drop_table("known_gaps")
    table = op.create_table(
        "known_gaps",
        sa.Column("project_id", BIG, autoincrement=False, nullable=False),
        sa.Column("gaps", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_known_gaps_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", name="pk_known_gaps"),
    )
    op.bulk_insert(table, known)


def _rows() -> list[dict[str, object]]:
    columns = sa.column("project_id", BIG), sa.column("gaps", sa.JSON())
    rows = op.get_bind().execute(sa.select(*columns).select_from(sa.table("known_gaps")))
    return [{"project_id": row.project_id, "gaps": row.gaps} for row in rows]
