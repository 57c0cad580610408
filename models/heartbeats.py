"""Heartbeats, which monitor jobs and open an alert when a ping is missing."""

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

from models.base import (
    BaseWithId,
    DurationInSeconds,
    build_cascading_foreign_key,
    build_partial_index,
)


class Heartbeat(BaseWithId):
    """A URL that a job requests after each run, and the state of the job."""

    __tablename__ = "heartbeats"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    name: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text, default="")
    #: Keyed hash of the secret part of the URL, for lookups.
    key_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: Encrypted secret part of the URL. It is stored because maintainers can display the URL again.
    key_ciphertext: Mapped[str] = mapped_column(Text)
    previous_key_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    previous_key_expires_at: Mapped[datetime | None]
    #: Interval of a simple schedule. NULL for a cron schedule.
    every: Mapped[timedelta | None] = mapped_column("every_seconds", DurationInSeconds)
    cron: Mapped[str | None] = mapped_column(String(100))
    #: Time zone of a cron schedule.
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC")
    grace: Mapped[timedelta] = mapped_column("grace_seconds", DurationInSeconds)
    #: Severity of the heartbeat's alerts, by name.
    severity: Mapped[str] = mapped_column(String(16))
    environment: Mapped[str | None] = mapped_column(String(255))
    #: State: new, up, down or paused. A late job stays up until its grace time ends.
    state: Mapped[str] = mapped_column(String(8), default="new")
    #: True if there is an open alert that no ping has resolved yet.
    has_alert: Mapped[bool] = mapped_column(default=False)
    #: Time of the next check in milliseconds since 1970. It is a number, so that both databases can
    #: add seconds in the same way. NULL while no check is due.
    due_ms: Mapped[int | None] = mapped_column(BigInteger)
    #: Start of the current interval: the last success, or the time when the heartbeat was resumed.
    counted_from: Mapped[datetime | None]
    pings: Mapped[int] = mapped_column(BigInteger, default=0)
    last_ping_at: Mapped[datetime | None]
    #: Kind of the last ping: start, success or fail. Log entries do not count.
    last_ping_kind: Mapped[str | None] = mapped_column(String(8))
    last_exit_status: Mapped[int | None] = mapped_column(SmallInteger)
    #: Start of the current run, which has not ended yet, in milliseconds since 1970.
    started_ms: Mapped[int | None] = mapped_column(BigInteger)
    started_rid: Mapped[str | None] = mapped_column(String(36))
    #: Duration of the last run in milliseconds, if the run sent a start ping.
    last_duration_ms: Mapped[int | None] = mapped_column(BigInteger)
    down_since: Mapped[datetime | None]
    paused_at: Mapped[datetime | None]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_heartbeats_project_id_id", "project_id", "id"),
        build_partial_index("ix_heartbeats_due_ms", "due_ms", where="due_ms IS NOT NULL"),
        # SQLite would reuse the ID of a deleted heartbeat, and the new heartbeat would receive the
        # old heartbeat's alerts.
        {"sqlite_autoincrement": True},
    )


class HeartbeatPing(BaseWithId):
    """A request to the URL of a heartbeat."""

    __tablename__ = "heartbeat_pings"

    heartbeat_id: Mapped[int] = build_cascading_foreign_key("heartbeats")
    created_at: Mapped[datetime]
    #: Kind: start, success, fail or log.
    kind: Mapped[str] = mapped_column(String(8))
    exit_status: Mapped[int | None] = mapped_column(SmallInteger)
    #: ID of the run, if the sender provided one.
    rid: Mapped[str | None] = mapped_column(String(36))
    #: Duration in milliseconds of the run that this ping ended, if the run sent a start ping.
    duration_ms: Mapped[int | None] = mapped_column(BigInteger)
    method: Mapped[str] = mapped_column(String(8))
    #: IP address of the client.
    sender: Mapped[str] = mapped_column(String(64))
    user_agent: Mapped[str] = mapped_column(String(255))
    #: Number of bytes that were read from the body. Longer bodies are truncated.
    size: Mapped[int] = mapped_column(Integer)
    #: Beginning of the body. NULL if there was none.
    body: Mapped[bytes | None] = mapped_column(LargeBinary)

    __table_args__ = (Index("ix_heartbeat_pings_heartbeat_id_id", "heartbeat_id", "id"),)
