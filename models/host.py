"""Which programs work on this database, and with which secret keys."""

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class Host(Base):
    """A web server or a worker that was heard of; it says so once a minute."""

    __tablename__ = "hosts"

    #: Machine, port and what it is: `web-1:8000 web`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    #: Space-separated fingerprints of the keys that it knows, first the one that it writes with.
    key_fingerprints: Mapped[str] = mapped_column(Text)
    #: The newest migration that its code knows.
    revision: Mapped[str] = mapped_column(String(32))
    #: By how much its clock is ahead of the database's; empty where they are one.
    clock_lead_ms: Mapped[int | None]
    seen_at: Mapped[datetime]


class SecretKeyUse(Base):
    """A secret key that hashes and encrypts here, or did; never the key itself."""

    __tablename__ = "secret_key_uses"

    #: Derived from the key; nothing leads back.
    fingerprint: Mapped[str] = mapped_column(String(32), primary_key=True)
    first_used_at: Mapped[datetime]
    last_used_at: Mapped[datetime]


class SchemaSupport(Base):
    """What code this schema can be used with: one row, which migrations write."""

    __tablename__ = "schema_support"

    #: Code that knows this migration, or a later one, works with the schema as it is now.
    oldest_revision: Mapped[str] = mapped_column(String(32), primary_key=True)


class JobTurn(Base):
    """When a periodic job was last taken up, so that one of several workers does it."""

    __tablename__ = "job_turns"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    taken_at: Mapped[datetime]
