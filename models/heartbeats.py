"""Heartbeats: jobs that report themselves, and an alert when one is not heard of."""

from datetime import datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Numbered, Seconds, belongs_to, partial_index


class Heartbeat(Numbered):
    """A URL that a job requests when it has run, and what is known of the job."""

    __tablename__ = "heartbeats"

    project_id: Mapped[int] = belongs_to("projects")
    name: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text, default="")
    #: Keyed hash of the secret part of the URL, for the look-up.
    key_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: The encrypted secret part, because maintainers can display the URL again.
    key_ciphertext: Mapped[str] = mapped_column(Text)
    previous_key_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    previous_key_expires_at: Mapped[datetime | None]
    #: The interval of a simple schedule; NULL for one in cron's format.
    every: Mapped[timedelta | None] = mapped_column("every_seconds", Seconds)
    cron: Mapped[str | None] = mapped_column(String(100))
    #: Of the schedule in cron's format.
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC")
    grace: Mapped[timedelta] = mapped_column("grace_seconds", Seconds)
    #: The severity of its alerts, as a word.
    severity: Mapped[str] = mapped_column(String(16))
    environment: Mapped[str | None] = mapped_column(String(255))
    #: new, up, down or paused. Whether one that is up is late depends on the time.
    state: Mapped[str] = mapped_column(String(8), default="new")
    #: Whether an alert was opened that no ping has resolved yet.
    has_alert: Mapped[bool] = mapped_column(default=False)
    #: When somebody has to look at it next, in milliseconds since 1970: a number, to which both
    #: databases add seconds in the same way. NULL while nothing can become due.
    due_ms: Mapped[int | None] = mapped_column(BigInteger)
    #: From when the schedule counts: the last success, or when it was resumed.
    counted_from: Mapped[datetime | None]
    pings: Mapped[int] = mapped_column(BigInteger, default=0)
    last_ping_at: Mapped[datetime | None]
    #: start, success or fail; entries of the log do not count.
    last_ping_kind: Mapped[str | None] = mapped_column(String(8))
    last_exit_status: Mapped[int | None] = mapped_column(SmallInteger)
    #: Of the run that has sent a start and no end yet, in milliseconds since 1970.
    started_ms: Mapped[int | None] = mapped_column(BigInteger)
    started_rid: Mapped[str | None] = mapped_column(String(36))
    #: How long the last run took, if it sent a start.
    last_duration_ms: Mapped[int | None] = mapped_column(BigInteger)
    down_since: Mapped[datetime | None]
    paused_at: Mapped[datetime | None]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_heartbeats_project_id_id", "project_id", "id"),
        partial_index("ix_heartbeats_due_ms", "due_ms", where="due_ms IS NOT NULL"),
        # SQLite would use the number of a deleted one again, and its alerts with it.
        {"sqlite_autoincrement": True},
    )


class HeartbeatPing(Numbered):
    """A request to the URL of a heartbeat."""

    __tablename__ = "heartbeat_pings"

    heartbeat_id: Mapped[int] = belongs_to("heartbeats")
    created_at: Mapped[datetime]
    #: start, success, fail or log.
    kind: Mapped[str] = mapped_column(String(8))
    exit_status: Mapped[int | None] = mapped_column(SmallInteger)
    #: The id of the run, if the sender gave one.
    rid: Mapped[str | None] = mapped_column(String(36))
    #: How long the run took that this ping ended, if it sent a start.
    duration_ms: Mapped[int | None] = mapped_column(BigInteger)
    method: Mapped[str] = mapped_column(String(8))
    #: IP address of the client.
    sender: Mapped[str] = mapped_column(String(64))
    user_agent: Mapped[str] = mapped_column(String(255))
    #: In bytes as far as it was read; more than is kept where it was longer.
    size: Mapped[int] = mapped_column(Integer)
    #: The beginning of the body; NULL if there was none.
    body: Mapped[bytes | None] = mapped_column(LargeBinary)

    __table_args__ = (Index("ix_heartbeat_pings_heartbeat_id_id", "heartbeat_id", "id"),)
