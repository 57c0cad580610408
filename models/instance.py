"""What an installation keeps of itself: settings, programs, checks, and repeated requests."""

from datetime import datetime

from sqlalchemy import Integer, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Numbered, belongs_to


class InstanceSetting(Base):
    """A value that replaces the environment's."""

    __tablename__ = "instance_settings"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
    updated_at: Mapped[datetime]


class SelfMonitorCheck(Numbered):
    """One synthetic alert on its way through the service."""

    __tablename__ = "self_monitor_checks"

    started_at: Mapped[datetime]
    #: Milliseconds from the request until its response, until the first page had left and until the
    #: resolution was answered; NULL for a step that did not happen.
    stored_ms: Mapped[int | None] = mapped_column(Integer)
    paged_ms: Mapped[int | None] = mapped_column(Integer)
    resolved_ms: Mapped[int | None] = mapped_column(Integer)
    #: What went wrong, as a sentence; NULL for nothing.
    problem: Mapped[str | None] = mapped_column(Text)
    #: Why the dead man's switch did not take its ping.
    switch_problem: Mapped[str | None] = mapped_column(Text)


class IdempotentRequest(Numbered):
    """A request that is carried out once, however often it is sent."""

    __tablename__ = "idempotent_requests"

    user_id: Mapped[int] = belongs_to("users", index=True)
    #: SHA-256 of the caller and its key.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: Keyed hash of method, URL and body.
    request_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: None while the request is under way.
    status: Mapped[int | None]
    response_ciphertext: Mapped[str | None] = mapped_column(Text)
    claimed_at: Mapped[datetime] = mapped_column(index=True)


class Installation(Numbered):
    """The installation: one row, written by its migration."""

    __tablename__ = "installation"

    installed_at: Mapped[datetime]


class Host(Base):
    """A web server or a worker that reports once a minute."""

    __tablename__ = "hosts"

    #: Machine, port and role: `web-1:8000 web`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    #: Fingerprints of its keys, separated by spaces; it writes with the first.
    key_fingerprints: Mapped[str] = mapped_column(Text)
    #: The newest migration that its code knows.
    revision: Mapped[str] = mapped_column(String(32))
    #: Milliseconds that its clock is ahead of the database's; NULL on SQLite.
    clock_lead_ms: Mapped[int | None]
    seen_at: Mapped[datetime]


class SecretKeyUse(Base):
    """The use of a secret key on this database, without the key itself."""

    __tablename__ = "secret_key_uses"

    #: Derived one-way from the key.
    fingerprint: Mapped[str] = mapped_column(String(32), primary_key=True)
    first_used_at: Mapped[datetime]
    last_used_at: Mapped[datetime]


class SchemaSupport(Base):
    """The oldest code that works with this schema: one row, written by migrations."""

    __tablename__ = "schema_support"

    #: Code that knows this migration or a later one works with the current schema.
    oldest_revision: Mapped[str] = mapped_column(String(32), primary_key=True)


class JobTurn(Base):
    """The last turn of a periodic job, so that one of several workers runs it.

    `domain/core/job_results.py` keeps results of backups and failures of jobs here too.
    """

    __tablename__ = "job_turns"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    taken_at: Mapped[datetime]
    #: The size of a backup, or the reason of a failure.
    detail: Mapped[str | None] = mapped_column(String(255))


class WebServer(Base):
    """A web server that receives requests, with its last mark."""

    __tablename__ = "web_servers"

    #: Machine and port: `web-1:8000`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    seen_at: Mapped[datetime]


class UnreachableTime(Numbered):
    """A time in which no web server received requests."""

    __tablename__ = "unreachable_times"

    began_at: Mapped[datetime]
    ended_at: Mapped[datetime] = mapped_column(index=True)
