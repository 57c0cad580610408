"""Data about the installation: settings, hosts, self-checks, and idempotent requests."""

from datetime import datetime

from sqlalchemy import Integer, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BaseWithId, build_cascading_foreign_key


class InstanceSetting(Base):
    """A setting value that overrides the environment."""

    __tablename__ = "instance_settings"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(Text)
    updated_at: Mapped[datetime]


class SelfMonitorCheck(BaseWithId):
    """A check of the removed self-monitor. This release does not use the table.

    Hosts with an earlier release still read and write the table during a rolling upgrade. A later
    release removes the table and this class.
    """

    __tablename__ = "self_monitor_checks"

    started_at: Mapped[datetime]
    stored_ms: Mapped[int | None] = mapped_column(Integer)
    paged_ms: Mapped[int | None] = mapped_column(Integer)
    resolved_ms: Mapped[int | None] = mapped_column(Integer)
    problem: Mapped[str | None] = mapped_column(Text)
    switch_problem: Mapped[str | None] = mapped_column(Text)


class IdempotentRequest(BaseWithId):
    """A request that is carried out only once, even if it is sent several times."""

    __tablename__ = "idempotent_requests"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: SHA-256 of the caller and the idempotency key.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: Keyed hash of the method, URL and body.
    request_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: Status of the response. None while the request is in progress.
    status: Mapped[int | None]
    response_ciphertext: Mapped[str | None] = mapped_column(Text)
    claimed_at: Mapped[datetime] = mapped_column(index=True)


class Installation(BaseWithId):
    """The installation, as a single row that a migration creates."""

    __tablename__ = "installation"

    installed_at: Mapped[datetime]


class Host(Base):
    """A web server or worker that reports once a minute."""

    __tablename__ = "hosts"

    #: Machine, port and role, such as `web-1:8000 web`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    #: Fingerprints of the host's keys, separated by spaces. The host encrypts with the first key.
    key_fingerprints: Mapped[str] = mapped_column(Text)
    #: Newest migration in the host's code.
    revision: Mapped[str] = mapped_column(String(32))
    #: Milliseconds by which the host's clock is ahead of the database. NULL on SQLite.
    clock_lead_ms: Mapped[int | None]
    seen_at: Mapped[datetime]


class SecretKeyUse(Base):
    """The fingerprint of a secret key that was used with this database, and the times of use."""

    __tablename__ = "secret_key_uses"

    #: Fingerprint, which is derived from the key with a one-way function.
    fingerprint: Mapped[str] = mapped_column(String(32), primary_key=True)
    first_used_at: Mapped[datetime]
    last_used_at: Mapped[datetime]


class SchemaSupport(Base):
    """The oldest code that works with this schema, as a single row that migrations write."""

    __tablename__ = "schema_support"

    #: Oldest migration that code must contain to work with the current schema.
    oldest_revision: Mapped[str] = mapped_column(String(32), primary_key=True)


class JobTurn(Base):
    """The last run of a periodic job, stored so that only one of several workers runs the job.

    `domain/core/job_results.py` also stores the results of backups and the failures of jobs here.
    """

    __tablename__ = "job_turns"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    taken_at: Mapped[datetime]
    #: Size of a backup, or the reason for a failure.
    detail: Mapped[str | None] = mapped_column(String(255))


class WebServer(Base):
    """A web server that receives requests, and the last time it reported."""

    __tablename__ = "web_servers"

    #: Machine and port, such as `web-1:8000`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    seen_at: Mapped[datetime]


class UnreachableTime(BaseWithId):
    """A period in which no web server received requests."""

    __tablename__ = "unreachable_times"

    began_at: Mapped[datetime]
    ended_at: Mapped[datetime] = mapped_column(index=True)
