"""Keep on-call schedules: rotations, overrides, swaps and calendar feeds."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    _create_schedules()
    _create_rotations()
    _create_changes()
    _create_feeds()


def _create_schedules() -> None:
    op.create_table(
        "on_call_schedules",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("name_key", sa.Text),
        _foreign_key("on_call_schedules", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_schedules"),
        sa.UniqueConstraint(
            "project_id", "name_key", name="uq_on_call_schedules_project_id_name_key"
        ),
        # The number of a deleted schedule is not given again.
        sqlite_autoincrement=True,
    )


def _create_rotations() -> None:
    op.create_table(
        "on_call_rotations",
        sa.Column("id", ID, nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("layer", sa.SmallInteger, nullable=False),
        sa.Column("unit", sa.String(8), nullable=False),
        sa.Column("every", sa.SmallInteger, nullable=False),
        sa.Column("weekdays", sa.JSON, nullable=False),
        sa.Column("handover_time", sa.Time, nullable=False),
        sa.Column("starts_on", sa.Date, nullable=False),
        sa.Column("first_turn", sa.SmallInteger, nullable=False),
        sa.Column("restrictions", sa.JSON, nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("valid_from", TIME, nullable=False),
        sa.Column("valid_until", TIME),
        _foreign_key("on_call_rotations", "schedule_id", "on_call_schedules"),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_rotations"),
    )
    _index("on_call_rotations", "schedule_id")
    _index("on_call_rotations", "valid_until")
    op.create_table(
        "on_call_turns",
        sa.Column("rotation_id", ID, nullable=False),
        sa.Column("position", sa.SmallInteger, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        _foreign_key("on_call_turns", "rotation_id", "on_call_rotations"),
        _foreign_key("on_call_turns", "user_id", "users"),
        sa.PrimaryKeyConstraint("rotation_id", "position", name="pk_on_call_turns"),
    )
    _index("on_call_turns", "user_id")


def _create_changes() -> None:
    op.create_table(
        "on_call_overrides",
        sa.Column("id", ID, nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("starts_at", TIME, nullable=False),
        sa.Column("ends_at", TIME, nullable=False),
        sa.Column("created_by", ID),
        sa.Column("created_at", TIME, nullable=False),
        _foreign_key("on_call_overrides", "schedule_id", "on_call_schedules"),
        _foreign_key("on_call_overrides", "user_id", "users"),
        _foreign_key("on_call_overrides", "created_by", "users", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_overrides"),
    )
    _index("on_call_overrides", "user_id")
    _index("on_call_overrides", "ends_at")
    _index("on_call_overrides", "created_by")
    _index("on_call_overrides", "schedule_id", "ends_at")
    op.create_table(
        "on_call_swaps",
        sa.Column("id", ID, nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("starts_at", TIME, nullable=False),
        sa.Column("ends_at", TIME, nullable=False),
        sa.Column("other_user_id", ID, nullable=False),
        sa.Column("other_starts_at", TIME, nullable=False),
        sa.Column("other_ends_at", TIME, nullable=False),
        sa.Column("over_at", TIME, nullable=False),
        sa.Column("created_by", ID),
        sa.Column("created_at", TIME, nullable=False),
        _foreign_key("on_call_swaps", "schedule_id", "on_call_schedules"),
        _foreign_key("on_call_swaps", "user_id", "users"),
        _foreign_key("on_call_swaps", "other_user_id", "users"),
        _foreign_key("on_call_swaps", "created_by", "users", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_swaps"),
    )
    for column in ("user_id", "other_user_id", "over_at", "created_by"):
        _index("on_call_swaps", column)
    _index("on_call_swaps", "schedule_id", "over_at")


def _create_feeds() -> None:
    op.create_table(
        "on_call_feeds",
        sa.Column("id", ID, nullable=False),
        sa.Column("schedule_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("keyed_at", TIME),
        sa.Column("last_read_at", TIME),
        _foreign_key("on_call_feeds", "schedule_id", "on_call_schedules"),
        _foreign_key("on_call_feeds", "user_id", "users"),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_feeds"),
        sa.UniqueConstraint("digest", name="uq_on_call_feeds_digest"),
        sa.UniqueConstraint("user_id", "schedule_id", name="uq_on_call_feeds_user_id_schedule_id"),
    )
    _index("on_call_feeds", "schedule_id")


def _foreign_key(
    table: str, column: str, target: str, *, ondelete: str = "CASCADE"
) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete=ondelete
    )


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, [*columns])


def downgrade() -> None:
    """Go back."""
    for table in ("feeds", "swaps", "overrides", "turns", "rotations", "schedules"):
        op.drop_table(f"on_call_{table}")
