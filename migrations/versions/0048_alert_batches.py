"""Keep changes of many alerts so that they can be undone, saved filters, and sizes of pages."""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_INDEXES = {
    "alert_batches": (("user_id",), ("project_id",), ("state", "id"), ("created_at",)),
    "saved_alert_filters": (("user_id", "project_id"), ("project_id", "is_shared")),
}


def _belongs_to(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}"
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "alert_batches",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("project_id", ID),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("list_query", sa.Text, nullable=False),
        sa.Column("filter", sa.JSON),
        sa.Column("newest_alert_id", sa.BigInteger, nullable=False),
        sa.Column("cursor", sa.String(255)),
        sa.Column("matched", sa.Integer),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("changed", "left")),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("restored", "kept")),
        sa.Column("undone_to", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        _belongs_to("alert_batches", "user_id", "users"),
        _belongs_to("alert_batches", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name="pk_alert_batches"),
    )
    op.create_table(
        "alert_batch_items",
        sa.Column("batch_id", ID, nullable=False),
        sa.Column("alert_id", sa.BigInteger, nullable=False),
        sa.Column("old_status", sa.String(16), nullable=False),
        sa.Column("old_ended_at", TIME),
        sa.Column("note_id", sa.BigInteger, nullable=False),
        _belongs_to("alert_batch_items", "batch_id", "alert_batches"),
        sa.PrimaryKeyConstraint("batch_id", "alert_id", name="pk_alert_batch_items"),
    )
    op.create_table(
        "saved_alert_filters",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("project_id", ID),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("is_shared", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", TIME, nullable=False),
        _belongs_to("saved_alert_filters", "user_id", "users"),
        _belongs_to("saved_alert_filters", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name="pk_saved_alert_filters"),
    )
    for table, indexes in _INDEXES.items():
        for columns in indexes:
            op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
    op.add_column("users", sa.Column("page_size", sa.SmallInteger))


def downgrade() -> None:
    """Go back."""
    op.drop_column("users", "page_size")
    for table in ("saved_alert_filters", "alert_batch_items", "alert_batches"):
        op.drop_table(table)
