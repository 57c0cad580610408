"""Add absences of users, and holidays of schedules."""

import sqlalchemy as sa
from alembic import op

from models.base import UTCDateTime

revision = "0121"
down_revision = "0120"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "on_call_conflict_notices",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "schedule_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("starts_at", UTCDateTime(), nullable=False),
        sa.Column("ends_at", UTCDateTime(), nullable=False),
        sa.Column("noticed_at", UTCDateTime(), nullable=False),
        sa.Column("reminded_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["on_call_schedules.id"],
            name=op.f("fk_on_call_conflict_notices_schedule_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_on_call_conflict_notices_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_on_call_conflict_notices")),
        sa.UniqueConstraint(
            "schedule_id",
            "user_id",
            "starts_at",
            name=op.f("uq_on_call_conflict_notices_schedule_id_user_id_starts_at"),
        ),
    )
    op.create_index(
        op.f("ix_on_call_conflict_notices_user_id"),
        "on_call_conflict_notices",
        ["user_id"],
        unique=False,
    )
    op.create_table(
        "on_call_imported_calendars",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column(
            "schedule_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("url_ciphertext", sa.Text(), nullable=True),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("etag", sa.String(length=255), nullable=True),
        sa.Column("last_modified", sa.String(length=255), nullable=True),
        sa.Column("event_count", sa.Integer(), nullable=False),
        sa.Column("skipped_count", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("refreshed_at", UTCDateTime(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_refresh_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (schedule_id IS NULL)",
            name=op.f("ck_on_call_imported_calendars_one_owner"),
        ),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["on_call_schedules.id"],
            name=op.f("fk_on_call_imported_calendars_schedule_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_on_call_imported_calendars_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_on_call_imported_calendars")),
    )
    op.create_index(
        op.f("ix_on_call_imported_calendars_next_refresh_at"),
        "on_call_imported_calendars",
        ["next_refresh_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_on_call_imported_calendars_schedule_id"),
        "on_call_imported_calendars",
        ["schedule_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_on_call_imported_calendars_user_id"),
        "on_call_imported_calendars",
        ["user_id"],
        unique=False,
    )
    op.create_table(
        "on_call_absences",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "calendar_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("starts_at", UTCDateTime(), nullable=False),
        sa.Column("ends_at", UTCDateTime(), nullable=False),
        sa.Column("note", sa.String(length=200), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["calendar_id"],
            ["on_call_imported_calendars.id"],
            name=op.f("fk_on_call_absences_calendar_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_on_call_absences_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_on_call_absences")),
    )
    op.create_index(
        op.f("ix_on_call_absences_calendar_id"), "on_call_absences", ["calendar_id"], unique=False
    )
    op.create_index(
        op.f("ix_on_call_absences_ends_at"), "on_call_absences", ["ends_at"], unique=False
    )
    op.create_index(
        op.f("ix_on_call_absences_user_id"), "on_call_absences", ["user_id"], unique=False
    )
    op.create_table(
        "on_call_holidays",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "calendar_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("first_day", sa.Date(), nullable=False),
        sa.Column("last_day", sa.Date(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["calendar_id"],
            ["on_call_imported_calendars.id"],
            name=op.f("fk_on_call_holidays_calendar_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_on_call_holidays")),
    )
    op.create_index(
        op.f("ix_on_call_holidays_calendar_id"), "on_call_holidays", ["calendar_id"], unique=False
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_index(op.f("ix_on_call_holidays_calendar_id"), table_name="on_call_holidays")
    op.drop_table("on_call_holidays")
    op.drop_index(op.f("ix_on_call_absences_user_id"), table_name="on_call_absences")
    op.drop_index(op.f("ix_on_call_absences_ends_at"), table_name="on_call_absences")
    op.drop_index(op.f("ix_on_call_absences_calendar_id"), table_name="on_call_absences")
    op.drop_table("on_call_absences")
    op.drop_index(
        op.f("ix_on_call_imported_calendars_user_id"), table_name="on_call_imported_calendars"
    )
    op.drop_index(
        op.f("ix_on_call_imported_calendars_schedule_id"), table_name="on_call_imported_calendars"
    )
    op.drop_index(
        op.f("ix_on_call_imported_calendars_next_refresh_at"),
        table_name="on_call_imported_calendars",
    )
    op.drop_table("on_call_imported_calendars")
    op.drop_index(
        op.f("ix_on_call_conflict_notices_user_id"), table_name="on_call_conflict_notices"
    )
    op.drop_table("on_call_conflict_notices")
