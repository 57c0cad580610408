"""What holds pages back: silences, maintenance windows, and how alerts that repeat are treated."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Numbered, OfNamespace, belongs_to, of_one_holder, refers_to


class Silence(OfNamespace, Numbered):
    """Matchers whose alerts page nobody for a time."""

    __tablename__ = "silences"

    #: In their canonical form (`domain.alerts.matching.matchers`).
    matchers: Mapped[str] = mapped_column(Text)
    comment: Mapped[str] = mapped_column(String(1000), default="")
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    created_at: Mapped[datetime]
    #: NULL for a command.
    created_by_id: Mapped[int | None] = refers_to("users", index=True)
    #: Who ended it before its time.
    ended_by_id: Mapped[int | None] = refers_to("users", index=True)

    __table_args__ = (
        Index("ix_silences_project_id_id", "project_id", "id"),
        Index("ix_silences_project_id_ends_at", "project_id", "ends_at"),
        Index("ix_silences_group_id_ends_at", "group_id", "ends_at"),
        of_one_holder(),
    )


class MaintenanceWindow(OfNamespace, Numbered):
    """A time, once or recurring, in which alerts page nobody."""

    __tablename__ = "maintenance_windows"

    name: Mapped[str] = mapped_column(String(255))
    #: The first start in local time, as `2026-12-06T02:00`.
    local_start: Mapped[str] = mapped_column(String(16))
    time_zone: Mapped[str] = mapped_column(String(64))
    #: The length in minutes of local time.
    minutes: Mapped[int]
    #: A recurrence rule (RFC 5545 section 3.3.10); NULL for once.
    rule: Mapped[str | None] = mapped_column(String(200))
    #: Of `domain.alerts.matching.conditions`.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: No occurrence begins before.
    first_starts_at: Mapped[datetime]
    #: No occurrence ends after; NULL if it recurs for ever.
    last_ends_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    #: NULL for a command.
    created_by_id: Mapped[int | None] = refers_to("users", index=True)

    __table_args__ = (
        Index("ix_maintenance_windows_project_id_id", "project_id", "id"),
        Index("ix_maintenance_windows_project_id_last_ends_at", "project_id", "last_ends_at"),
        Index("ix_maintenance_windows_group_id_last_ends_at", "group_id", "last_ends_at"),
        of_one_holder(),
    )


class FlapSetting(Base):
    """How a project treats alerts that open again and again; without a row, as usual."""

    __tablename__ = "flap_settings"

    project_id: Mapped[int] = belongs_to("projects", primary_key=True, autoincrement=False)
    is_on: Mapped[bool]
    #: An alert that opened more often than this …
    openings: Mapped[int]
    #: … in so many minutes is flapping.
    within_minutes: Mapped[int]
    #: A flapping alert pages once it has been open for so many minutes.
    hold_minutes: Mapped[int]
    #: An acknowledged alert that opens again so many minutes after its end continues; 0 for never.
    reopen_minutes: Mapped[int]
    #: Whether critical alerts that flap are held back as well.
    holds_critical: Mapped[bool] = mapped_column(default=False, server_default=false())
