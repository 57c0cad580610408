"""Add mappings, occurrences, notes, assignments and environments."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go forward."""
    op.add_column("integrations", sa.Column("sample", sa.Text()))
    op.add_column("integrations", sa.Column("mapping", sa.JSON()))
    op.add_column("deliveries", sa.Column("duration", sa.Integer()))
    op.add_column(
        "deliveries", sa.Column("skipped", sa.Integer(), nullable=False, server_default="0")
    )
    _add_occurrences()
    _add_notes()
    _add_assignments()
    _add_environments()


def _add_occurrences() -> None:
    op.create_table(
        "occurrences",
        sa.Column("alert_id", BIG, nullable=False),
        sa.Column("delivery_id", BIG, nullable=False),
        sa.Column("item_index", sa.Integer(), nullable=False),
        sa.Column("action", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_occurrences_alert_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["deliveries.id"],
            name="fk_occurrences_delivery_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("alert_id", "delivery_id", "item_index", name="pk_occurrences"),
    )
    op.create_index("ix_occurrences_delivery_id", "occurrences", ["delivery_id"])


def _add_notes() -> None:
    op.create_table(
        "alert_notes",
        sa.Column("id", BIG, nullable=False),
        sa.Column("alert_id", BIG, nullable=False),
        sa.Column("user_id", BIG),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_alert_notes_alert_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_alert_notes_user_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_notes"),
    )
    op.create_index("ix_alert_notes_alert_id", "alert_notes", ["alert_id"])


def _add_assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("alert_id", BIG, autoincrement=False, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_assignments_alert_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_assignments_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("alert_id", name="pk_assignments"),
    )
    op.create_index("ix_assignments_user_id", "assignments", ["user_id"])


def _add_environments() -> None:
    op.create_table(
        "environments",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_environments_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("project_id", "name", name="uq_environments_project_id_name"),
    )


def downgrade() -> None:
    """Go back."""
    for table in ("environments", "assignments", "alert_notes", "occurrences"):
        op.drop_table(table)
    op.drop_column("deliveries", "skipped")
    op.drop_column("deliveries", "duration")
    op.drop_column("integrations", "mapping")
    op.drop_column("integrations", "sample")
