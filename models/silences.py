"""Silences, maintenance windows, and flap detection settings, which suppress or delay pages."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import (
    Base,
    BaseWithId,
    NamespaceOwnedMixin,
    build_cascading_foreign_key,
    build_one_owner_constraint,
    build_set_null_foreign_key,
)


class Silence(NamespaceOwnedMixin, BaseWithId):
    """A period in which alerts with certain labels or fields do not page anyone."""

    __tablename__ = "silences"

    #: Matchers in canonical form (`domain.alerts.matching.matcher_syntax`).
    matchers: Mapped[str] = mapped_column(Text)
    comment: Mapped[str] = mapped_column(String(1000), default="")
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    created_at: Mapped[datetime]
    #: User who created the silence. NULL if it was created on the command line.
    created_by_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    #: User who ended the silence early.
    ended_by_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)

    __table_args__ = (
        Index("ix_silences_project_id_id", "project_id", "id"),
        Index("ix_silences_project_id_ends_at", "project_id", "ends_at"),
        Index("ix_silences_group_id_ends_at", "group_id", "ends_at"),
        build_one_owner_constraint(),
    )


class MaintenanceWindow(NamespaceOwnedMixin, BaseWithId):
    """A single or recurring period in which alerts do not page anyone."""

    __tablename__ = "maintenance_windows"

    name: Mapped[str] = mapped_column(String(255))
    #: First start in local time, such as `2026-12-06T02:00`.
    local_start: Mapped[str] = mapped_column(String(16))
    time_zone: Mapped[str] = mapped_column(String(64))
    #: Duration in minutes of local time.
    minutes: Mapped[int]
    #: Recurrence rule (RFC 5545 section 3.3.10). NULL for a window that does not recur.
    rule: Mapped[str | None] = mapped_column(String(200))
    #: Conditions in the format of `domain.alerts.matching.conditions`.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: Time at or before the start of the first occurrence.
    first_starts_at: Mapped[datetime]
    #: Time at or after the end of the last occurrence. NULL if the window recurs forever.
    last_ends_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    #: User who created the window. NULL if it was created on the command line.
    created_by_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)

    __table_args__ = (
        Index("ix_maintenance_windows_project_id_id", "project_id", "id"),
        Index("ix_maintenance_windows_project_id_last_ends_at", "project_id", "last_ends_at"),
        Index("ix_maintenance_windows_group_id_last_ends_at", "group_id", "last_ends_at"),
        build_one_owner_constraint(),
    )


class FlapSetting(Base):
    """The flap detection settings of a project. Projects without a row use the defaults."""

    __tablename__ = "flap_settings"

    project_id: Mapped[int] = build_cascading_foreign_key(
        "projects", primary_key=True, autoincrement=False
    )
    is_on: Mapped[bool]
    #: Number of openings above which an alert is flapping.
    openings: Mapped[int]
    #: Period in which openings of an alert are counted, in minutes.
    within_minutes: Mapped[int]
    #: Minutes after which a flapping alert can page the same recipients again.
    hold_minutes: Mapped[int]
    #: Minutes after the end of an acknowledged alert during which a new alert continues that alert.
    #: The new alert pages only if it stays open for the same time. 0 to page immediately.
    reopen_minutes: Mapped[int]
    #: True if repeated pages about critical alerts are also delayed.
    holds_critical: Mapped[bool] = mapped_column(default=False, server_default=false())
