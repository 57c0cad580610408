"""Hold pages back: silences, maintenance windows, and what becomes of alerts that flap."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_INDEXES = {
    "silences": (
        ("created_by_id",),
        ("ended_by_id",),
        ("project_id", "id"),
        ("project_id", "ends_at"),
    ),
    "maintenance_windows": (
        ("created_by_id",),
        ("project_id", "id"),
        ("project_id", "last_ends_at"),
    ),
}


def _project(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_project_id"
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=name, ondelete="CASCADE")


def _user(table: str, column: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}"
    return sa.ForeignKeyConstraint([column], ["users.id"], name=name, ondelete="SET NULL")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "silences",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("matchers", sa.Text, nullable=False),
        sa.Column("comment", sa.String(1000), nullable=False),
        sa.Column("starts_at", TIME, nullable=False),
        sa.Column("ends_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by_id", ID),
        sa.Column("ended_by_id", ID),
        _project("silences"),
        _user("silences", "created_by_id"),
        _user("silences", "ended_by_id"),
        sa.PrimaryKeyConstraint("id", name="pk_silences"),
    )
    op.create_table(
        "maintenance_windows",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("local_start", sa.String(16), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("minutes", sa.Integer, nullable=False),
        sa.Column("rule", sa.String(200)),
        sa.Column("conditions", sa.JSON, nullable=False),
        sa.Column("first_starts_at", TIME, nullable=False),
        sa.Column("last_ends_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by_id", ID),
        _project("maintenance_windows"),
        _user("maintenance_windows", "created_by_id"),
        sa.PrimaryKeyConstraint("id", name="pk_maintenance_windows"),
    )
    op.create_table(
        "flap_settings",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("is_on", sa.Boolean, nullable=False),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ("openings", "within_minutes", "hold_minutes", "reopen_minutes")
        ),
        _project("flap_settings"),
        sa.PrimaryKeyConstraint("project_id", name="pk_flap_settings"),
    )
    for table, indexes in _INDEXES.items():
        for columns in indexes:
            op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def downgrade() -> None:
    """Go back."""
    for table in ("flap_settings", "maintenance_windows", "silences"):
        op.drop_table(table)
