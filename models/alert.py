"""Alerts, their counter and their daily counts."""

from datetime import date, datetime

from sqlalchemy import (
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class AlertCounter(Base):
    """The row that batches and changes of status lock, so that they run one by one in a project.

    On SQLite it also counts the alerts. On Postgres a sequence does (migration 0008), and single
    alerts are stored without this lock.
    """

    __tablename__ = "alert_counters"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    #: On SQLite, the last alert number (iid) of the project.
    last_iid: Mapped[int] = mapped_column(default=0)


class Alert(Base):
    """A problem that was reported once or several times.

    Columns hold the fields that lists show and search; others are read from the delivery's body.
    """

    __tablename__ = "alerts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    #: Number within the project: 1, 2, 3 …
    iid: Mapped[int]
    integration_id: Mapped[int | None] = mapped_column(
        ForeignKey("integrations.id", ondelete="SET NULL")
    )
    #: The last delivery that changed a field of the alert, else the one that opened it, and the
    #: index of the item.
    delivery_id: Mapped[int | None] = mapped_column(
        ForeignKey("deliveries.id", ondelete="SET NULL"), index=True
    )
    item_index: Mapped[int] = mapped_column(default=0)
    #: SHA-256; reports with the same one are grouped. NULL: never grouped.
    fingerprint: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: triggered, acknowledged, resolved or ignored.
    status: Mapped[str] = mapped_column(String(16))
    #: Rank: critical 0, high 1, medium 2, low 3, info 4, unknown 5.
    severity: Mapped[int] = mapped_column(SmallInteger)
    #: The reason for the severity, as a text; NULL for alerts older than the column.
    severity_reason: Mapped[str | None] = mapped_column(String(200))
    #: The severity before it was raised; NULL if it was not, or fell back.
    raised_from: Mapped[int | None] = mapped_column(SmallInteger)
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(String(1000))
    service: Mapped[str | None] = mapped_column(String(100))
    monitoring_tool: Mapped[str | None] = mapped_column(String(100))
    #: Host names, one per line; at most 255 characters without the line breaks.
    hosts: Mapped[str] = mapped_column(Text, default="")
    #: The expression of the metric; empty if there is none, NULL if it is unknown.
    query: Mapped[str | None] = mapped_column(Text)
    environment: Mapped[str | None] = mapped_column(String(255))
    #: The number of reports.
    events: Mapped[int] = mapped_column(default=1)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    #: When the report arrived that resolved it; NULL if none did.
    recovery_received_at: Mapped[datetime | None]
    last_event_at: Mapped[datetime]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_alerts_project_id_iid", "project_id", "iid", unique=True),
        # One for each order and each filter of the list, beginning with the status. None contains a
        # column that every report changes (events, last_event_at), so a report updates no index.
        Index("ix_alerts_started", "project_id", "status", "started_at", "id"),
        # One for all statuses together; other conditions are checked for each alert.
        Index("ix_alerts_project_id_started_at_id", "project_id", "started_at", "id"),
        Index("ix_alerts_urgency", "project_id", "status", text("(-severity)"), "started_at", "id"),
        Index(
            "ix_alerts_environment",
            *("project_id", "environment", "status", "started_at", "id"),
            postgresql_where=text("environment IS NOT NULL"),
            sqlite_where=text("environment IS NOT NULL"),
        ),
        Index(
            "ix_alerts_service",
            *("project_id", "service", "status", "started_at", "id"),
            postgresql_where=text("service IS NOT NULL"),
            sqlite_where=text("service IS NOT NULL"),
        ),
        Index("ix_alerts_integration", "integration_id", "status", "started_at", "id"),
        # At most one open alert per fingerprint, also with concurrent deliveries.
        Index(
            "uq_alerts_open_fingerprint",
            "fingerprint",
            "project_id",
            unique=True,
            postgresql_where=text("fingerprint IS NOT NULL AND status <> 'resolved'"),
            sqlite_where=text("fingerprint IS NOT NULL AND status <> 'resolved'"),
        ),
        # For the resolved alert that a late recovery belongs to.
        Index("ix_alerts_fingerprint", "fingerprint", "project_id", "id"),
    )


class AlertDay(Base):
    """The number of alerts opened on a day, by environment and severity."""

    __tablename__ = "alert_days"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    #: In UTC.
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    #: Empty for alerts without an environment.
    environment: Mapped[str] = mapped_column(String(255), primary_key=True)
    severity: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    alerts: Mapped[int]


#: On Postgres, the counts that are not added to AlertDay yet: one row per delivery, so that no two
#: deliveries update the same row.
ALERT_DAY_ADDITIONS = Table(
    "alert_day_additions",
    Base.metadata,
    Column("project_id", BigId, nullable=False),
    Column("day", Date, nullable=False),
    Column("environment", String(255), nullable=False),
    Column("severity", SmallInteger, nullable=False),
    Column("alerts", Integer, nullable=False),
    Index("ix_alert_day_additions_project_id_day", "project_id", "day"),
)
