"""Alerts, and the counter that numbers them."""

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
    """What webhooks and changes of status lock, so that those of a project come one by one.

    On SQLite it counts as well; on Postgres a sequence does (migration 0008), and single alerts
    come in without this lock.
    """

    __tablename__ = "alert_counters"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    #: On SQLite, the last alert number (iid) of the project.
    last_iid: Mapped[int] = mapped_column(default=0)


class Alert(Base):
    """One thing that is wrong, however often it was reported.

    Columns hold what lists show and search; everything else is read from the delivery's body.
    """

    __tablename__ = "alerts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    #: Number within the project: 1, 2, 3 …
    iid: Mapped[int]
    integration_id: Mapped[int | None] = mapped_column(
        ForeignKey("integrations.id", ondelete="SET NULL")
    )
    #: The delivery whose words the alert shows, the first or the last that said something new, and
    #: which of its items did.
    delivery_id: Mapped[int | None] = mapped_column(
        ForeignKey("deliveries.id", ondelete="SET NULL"), index=True
    )
    item_index: Mapped[int] = mapped_column(default=0)
    #: SHA-256; alerts with the same one are the same thing. Empty: never grouped.
    fingerprint: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: triggered, acknowledged, resolved or ignored.
    status: Mapped[str] = mapped_column(String(16))
    #: Rank: critical 0, high 1, medium 2, low 3, info 4, unknown 5.
    severity: Mapped[int] = mapped_column(SmallInteger)
    #: Why it is that one, in words; empty of alerts from before it was kept.
    severity_reason: Mapped[str | None] = mapped_column(String(200))
    #: The severity that it has risen from, as long as it is worse than that.
    raised_from: Mapped[int | None] = mapped_column(SmallInteger)
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(String(1000))
    service: Mapped[str | None] = mapped_column(String(100))
    monitoring_tool: Mapped[str | None] = mapped_column(String(100))
    #: Host names, one a line; 255 characters in all, without the line ends.
    hosts: Mapped[str] = mapped_column(Text, default="")
    #: The metric's expression, whole; empty where there is none, NULL where it is not known.
    query: Mapped[str | None] = mapped_column(Text)
    environment: Mapped[str | None] = mapped_column(String(255))
    #: How often it was reported.
    events: Mapped[int] = mapped_column(default=1)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    last_event_at: Mapped[datetime]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_alerts_project_id_iid", "project_id", "iid", unique=True),
        # One for each order of the list and each of its filters, status by status. None has what
        # changes with every report (events, last_event_at): counting one more would cost them all.
        Index("ix_alerts_started", "project_id", "status", "started_at", "id"),
        # And one for all statuses together, when everything else is asked of each alert.
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
        # One open alert a fingerprint: what makes grouping safe under load.
        Index(
            "uq_alerts_open_fingerprint",
            "fingerprint",
            "project_id",
            unique=True,
            postgresql_where=text("fingerprint IS NOT NULL AND status <> 'resolved'"),
            sqlite_where=text("fingerprint IS NOT NULL AND status <> 'resolved'"),
        ),
        # Finds the resolved alert that a late recovery belongs to.
        Index("ix_alerts_fingerprint", "fingerprint", "project_id", "id"),
    )


class AlertDay(Base):
    """How many alerts of a kind a day opened."""

    __tablename__ = "alert_days"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    #: In UTC.
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    #: Empty for alerts without one.
    environment: Mapped[str] = mapped_column(String(255), primary_key=True)
    severity: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    alerts: Mapped[int]


#: On Postgres the same before the worker adds it up, a row for each delivery: no two of them write
#: the same row.
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
