"""The outbox of e-mail."""

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Mail(Base):
    """A message to one recipient, sent by the worker."""

    __tablename__ = "mails"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    #: Identifies the message: a second one with the same key is not stored.
    key: Mapped[str] = mapped_column(String(255), unique=True)
    recipient: Mapped[str] = mapped_column(String(255))
    subject: Mapped[str] = mapped_column(String(255))
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: NULL when it was sent or given up.
    next_try_at: Mapped[datetime | None] = mapped_column(index=True)
    tries: Mapped[int] = mapped_column(Integer, default=0)
    sent_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)


class AssignmentNotice(Base):
    """An assignment to an alert or an incident that the user is told of, until it is written."""

    __tablename__ = "assignment_notices"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    #: One of both.
    alert_id: Mapped[int | None] = mapped_column(
        ForeignKey("alerts.id", ondelete="CASCADE"), index=True
    )
    incident_id: Mapped[int | None] = mapped_column(
        ForeignKey("incidents.id", ondelete="CASCADE"), index=True
    )
    #: Who assigned it; empty for commands.
    by_name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]


class KnownGaps(Base):
    """What keeps the policies of a project from reaching everybody, as its maintainers know it."""

    __tablename__ = "known_gaps"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    #: The size of each gap by its key (`domain.escalations.gaps`).
    gaps: Mapped[dict[str, int]] = mapped_column(JSON)
