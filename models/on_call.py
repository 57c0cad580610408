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
    BigId,
    Numbered,
    OfNamespace,
    belongs_to,
    of_one_holder,
    partial_index,
    refers_to,
)
from models.folding import folded, keep_folded


class OnCallSchedule(OfNamespace, Numbered):
    """An on-call schedule of a project, or of a group for all its projects."""

    __tablename__ = "on_call_schedules"
    # SQLite would give the number of a deleted schedule to another one, and steps of escalation
    # policies name schedules by number.
    __table_args__ = (
        UniqueConstraint("project_id", "name_key"),
        Index("uq_on_call_schedules_group_id_name_key", "group_id", "name_key", unique=True),
        of_one_holder(),
        {"sqlite_autoincrement": True},
    )

    name: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text, default="")
    #: A name of the IANA database.
    time_zone: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    name_key: Mapped[str | None] = folded()


keep_folded(OnCallSchedule.name, OnCallSchedule.name_key)


class OnCallRotation(Numbered):
    """A rotation during a time: a change ends the row and begins another one.

    So past shifts are told as they were.
    """

    __tablename__ = "on_call_rotations"

    schedule_id: Mapped[int] = belongs_to("on_call_schedules", index=True)
    name: Mapped[str] = mapped_column(String(100))
    #: The highest layer in which somebody is on call counts.
    layer: Mapped[int] = mapped_column(SmallInteger)
    #: Of a turn: hours, days or weeks, and how many.
    unit: Mapped[str] = mapped_column(String(8))
    every: Mapped[int] = mapped_column(SmallInteger)
    #: Days of hand-over of weekly turns: 0 is Monday.
    weekdays: Mapped[list[int]] = mapped_column(JSON)
    #: By the wall clock, as the day.
    handover_time: Mapped[time] = mapped_column(Time)
    starts_on: Mapped[date] = mapped_column(Date)
    #: The place of the user who has the turn of that day.
    first_turn: Mapped[int] = mapped_column(SmallInteger)
    #: Objects with start, end and weekdays; none: around the clock.
    restrictions: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    #: Of the schedule at that time.
    time_zone: Mapped[str] = mapped_column(String(64))
    valid_from: Mapped[datetime]
    #: NULL while it is in force.
    valid_until: Mapped[datetime | None] = mapped_column(index=True)


class OnCallTurn(Base):
    """A user in a rotation, by the place in the order of turns."""

    __tablename__ = "on_call_turns"

    rotation_id: Mapped[int] = belongs_to("on_call_rotations", primary_key=True)
    position: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    user_id: Mapped[int] = belongs_to("users", index=True)


class OnCallOverride(Numbered):
    """A time in which one user is on call instead of everybody, of one other, or beside all."""

    __tablename__ = "on_call_overrides"

    schedule_id: Mapped[int] = belongs_to("on_call_schedules")
    user_id: Mapped[int] = belongs_to("users", index=True)
    #: Whose shifts they are; NULL: those of everybody.
    instead_of_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    #: Whether everybody else stays on call.
    in_addition: Mapped[bool] = mapped_column(default=False, server_default=false())
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime] = mapped_column(index=True)
    created_by: Mapped[int | None] = refers_to("users", index=True)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_on_call_overrides_schedule_id_ends_at", "schedule_id", "ends_at"),)


class OnCallSwap(Numbered):
    """Two times of two users, each of whom takes the other's."""

    __tablename__ = "on_call_swaps"

    schedule_id: Mapped[int] = belongs_to("on_call_schedules")
    user_id: Mapped[int] = belongs_to("users", index=True)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    other_user_id: Mapped[int] = belongs_to("users", index=True)
    other_starts_at: Mapped[datetime]
    other_ends_at: Mapped[datetime]
    #: The later of both ends.
    over_at: Mapped[datetime] = mapped_column(index=True)
    created_by: Mapped[int | None] = refers_to("users", index=True)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_on_call_swaps_schedule_id_over_at", "schedule_id", "over_at"),)


class OnCallEligibility(Numbered):
    """A time in which a user whom a schedule names could be on call, as it was seen.

    If that ended at once, the user could not be when it was first looked at.
    """

    __tablename__ = "on_call_eligibilities"

    schedule_id: Mapped[int] = belongs_to("on_call_schedules", index=True)
    user_id: Mapped[int] = belongs_to("users", index=True)
    #: NULL: as long as anything is known.
    since: Mapped[datetime | None]
    #: When it ended, or a role ends; NULL: without an end.
    until: Mapped[datetime | None] = mapped_column(index=True)


class OnCallFeed(Numbered):
    """The secret address of a calendar, which a user subscribes to."""

    __tablename__ = "on_call_feeds"

    #: NULL: the user's own shifts in all schedules.
    schedule_id: Mapped[int | None] = belongs_to("on_call_schedules")
    user_id: Mapped[int] = belongs_to("users")
    #: Keyed SHA-256 of the token in the address.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime]
    #: When the digest was renewed under a newer key; NULL: never.
    keyed_at: Mapped[datetime | None]
    #: Within an hour.
    last_read_at: Mapped[datetime | None]
    #: The authorization of the application that made it; it ends with that access.
    authorization_id: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        UniqueConstraint("user_id", "schedule_id"),
        Index("ix_on_call_feeds_schedule_id", "schedule_id"),
        partial_index(
            "uq_on_call_feeds_user_id", "user_id", where="schedule_id IS NULL", unique=True
        ),
    )
