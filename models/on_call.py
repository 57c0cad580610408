"""On-call schedules: rotations, overrides, swaps and calendar feeds."""

from datetime import date, datetime, time
from typing import Any

from sqlalchemy import (
    JSON,
    Date,
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    Time,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import (
    Base,
    BaseWithId,
    BigId,
    NamespaceOwnedMixin,
    build_cascading_foreign_key,
    build_one_owner_constraint,
    build_partial_index,
    build_set_null_foreign_key,
)
from models.case_folding import build_folded_column, sync_folded_column


class OnCallSchedule(NamespaceOwnedMixin, BaseWithId):
    """An on-call schedule of a project, or of a group for all its projects."""

    __tablename__ = "on_call_schedules"
    # Escalation steps refer to schedules by ID, so SQLite must not reuse the ID of a deleted
    # schedule.
    __table_args__ = (
        UniqueConstraint("project_id", "name_key"),
        Index("uq_on_call_schedules_group_id_name_key", "group_id", "name_key", unique=True),
        build_one_owner_constraint(),
        {"sqlite_autoincrement": True},
    )

    name: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text, default="")
    #: IANA name of the time zone.
    time_zone: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    name_key: Mapped[str | None] = build_folded_column()


sync_folded_column(OnCallSchedule.name, OnCallSchedule.name_key)


class OnCallRotation(BaseWithId):
    """A version of a rotation. Each change ends the current version and creates a new version.

    Past shifts are computed from the versions that applied at the time.
    """

    __tablename__ = "on_call_rotations"

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules", index=True)
    name: Mapped[str] = mapped_column(String(100))
    #: Layer of the rotation. The highest layer with a user on call takes precedence.
    layer: Mapped[int] = mapped_column(SmallInteger)
    #: Length of a turn: the unit (hours, days or weeks) and the number of units.
    unit: Mapped[str] = mapped_column(String(8))
    every: Mapped[int] = mapped_column(SmallInteger)
    #: Handoff days of weekly turns. 0 is Monday.
    weekdays: Mapped[list[int]] = mapped_column(JSON)
    #: Local time of the handoffs, and the day of the first handoff.
    handover_time: Mapped[time] = mapped_column(Time)
    starts_on: Mapped[date] = mapped_column(Date)
    #: Position of the user whose turn starts on the first day.
    first_turn: Mapped[int] = mapped_column(SmallInteger)
    #: Restrictions with start, end and weekdays. Empty if the rotation is not restricted.
    restrictions: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    #: Time zone of the schedule when the version was created.
    time_zone: Mapped[str] = mapped_column(String(64))
    valid_from: Mapped[datetime]
    #: End of validity. NULL for the current version.
    valid_until: Mapped[datetime | None] = mapped_column(index=True)


class OnCallTurn(Base):
    """A user in a rotation, with the user's position in the rotation order."""

    __tablename__ = "on_call_turns"

    rotation_id: Mapped[int] = build_cascading_foreign_key("on_call_rotations", primary_key=True)
    position: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)


class OnCallOverride(BaseWithId):
    """A period in which a user is on call in place of, or in addition to, other users."""

    __tablename__ = "on_call_overrides"

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules")
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: User whose shifts are replaced. NULL if the override replaces all users or is additional.
    instead_of_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    #: True if all other users stay on call.
    in_addition: Mapped[bool] = mapped_column(default=False, server_default=false())
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime] = mapped_column(index=True)
    created_by: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_on_call_overrides_schedule_id_ends_at", "schedule_id", "ends_at"),)


class OnCallSwap(BaseWithId):
    """An exchange of shifts between two users."""

    __tablename__ = "on_call_swaps"

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules")
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    other_user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    other_starts_at: Mapped[datetime]
    other_ends_at: Mapped[datetime]
    #: End of the shift that ends later.
    over_at: Mapped[datetime] = mapped_column(index=True)
    created_by: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_on_call_swaps_schedule_id_over_at", "schedule_id", "over_at"),)


class OnCallSwapRequest(BaseWithId):
    """A user's request to swap shifts, which the other user accepts or declines."""

    __tablename__ = "on_call_swap_requests"

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules")
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    #: Time on call during the period in seconds, as calculated when the swap was requested.
    seconds: Mapped[int]
    other_user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    other_starts_at: Mapped[datetime]
    other_ends_at: Mapped[datetime]
    other_seconds: Mapped[int]
    #: Start of the earlier shift, at which an unanswered request expires.
    expires_at: Mapped[datetime] = mapped_column(index=True)
    #: State that a user chose: requested, accepted, declined or withdrawn.
    state: Mapped[str] = mapped_column(String(9))
    created_at: Mapped[datetime]
    answered_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_on_call_swap_requests_schedule_id_expires_at", "schedule_id", "expires_at"),
    )


class OnCallEligibility(BaseWithId):
    """A period in which a user of a schedule was observed to be eligible for on-call duty.

    A single period with the same start and end means that the user was never eligible.
    """

    __tablename__ = "on_call_eligibilities"

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules", index=True)
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: Start of the period. NULL if the user was already eligible at the first observation.
    since: Mapped[datetime | None]
    #: End of the period, which may be the expiry of a role. NULL if the period has no end.
    until: Mapped[datetime | None] = mapped_column(index=True)


class OnCallFeed(BaseWithId):
    """The secret URL of a calendar that a user subscribes to."""

    __tablename__ = "on_call_feeds"

    #: Schedule of the calendar. NULL for a calendar of the user's own shifts in all schedules.
    schedule_id: Mapped[int | None] = build_cascading_foreign_key("on_call_schedules")
    user_id: Mapped[int] = build_cascading_foreign_key("users")
    #: Keyed SHA-256 of the token in the URL.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime]
    #: Time at which the digest was renewed with a newer key. NULL if it was never renewed.
    keyed_at: Mapped[datetime | None]
    #: Time of the last request, recorded at most once an hour.
    last_read_at: Mapped[datetime | None]
    #: Authorization of the application that created the feed. The feed is available only while the
    #: application has access.
    authorization_id: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        UniqueConstraint("user_id", "schedule_id"),
        Index("ix_on_call_feeds_schedule_id", "schedule_id"),
        build_partial_index(
            "uq_on_call_feeds_user_id", "user_id", where="schedule_id IS NULL", unique=True
        ),
    )
