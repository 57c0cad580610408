"""What the programs of an installation say of themselves."""

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Installation(Base):
    """The installation: one row, written by its migration."""

    __tablename__ = "installation"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
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
    """The last turn of a periodic job, so that one of several workers runs it."""

    __tablename__ = "job_turns"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    taken_at: Mapped[datetime]


class WebServer(Base):
    """A web server that receives requests, with its last mark."""

    __tablename__ = "web_servers"

    #: Machine and port: `web-1:8000`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    seen_at: Mapped[datetime]


class UnreachableTime(Base):
    """A time in which no web server received requests."""

    __tablename__ = "unreachable_times"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime] = mapped_column(index=True)
