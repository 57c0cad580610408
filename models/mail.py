"""The outbox of e-mail."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Numbered, OfNamespace, belongs_to, of_one_holder, partial_index


class Mail(Numbered):
    """A message to one recipient, sent by the worker."""

    __tablename__ = "mails"

    #: Identifies the message: a second one with the same key is not stored.
    key: Mapped[str] = mapped_column(String(255), unique=True)
    recipient: Mapped[str] = mapped_column(String(255))
    subject: Mapped[str] = mapped_column(String(255))
    #: Encrypted with SECRET_KEY, because the text may contain a link that signs somebody in. Such
    #: links are removed when the message is sent or given up. NULL until a worker encrypts a
    #: message that a host of an older release queued.
    text_ciphertext: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: NULL when it was sent or given up.
    send_at: Mapped[datetime | None] = mapped_column(index=True)
    tries: Mapped[int] = mapped_column(Integer, default=0)
    sent_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
    #: The person, projects and alerts of a notice, which are checked before each attempt
    #: (`domain/paging/notifications/notice_checks.py`). NULL for other messages.
    about: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: The columns of older releases, whose workers send every row that is due here. The text is
    #: empty once it is encrypted.
    text: Mapped[str] = mapped_column(Text, default="")
    next_try_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (partial_index("ix_mails_in_clear", "id", where="text <> ''"),)


class AssignmentNotice(Numbered):
    """An assignment to an alert or an incident that the user is told of, until it is written."""

    __tablename__ = "assignment_notices"

    user_id: Mapped[int] = belongs_to("users", index=True)
    #: One of both.
    alert_id: Mapped[int | None] = belongs_to("alerts", index=True)
    incident_id: Mapped[int | None] = belongs_to("incidents", index=True)
    #: Who assigned it; empty for commands.
    by_name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]


class KnownGaps(OfNamespace, Numbered):
    """What keeps policies of a project or group from reaching everybody, as maintainers know."""

    __tablename__ = "known_gaps"

    #: The size of each gap by its key (`domain.paging.escalations.gaps`).
    gaps: Mapped[dict[str, int]] = mapped_column(JSON)

    __table_args__ = (
        UniqueConstraint("project_id"),
        UniqueConstraint("group_id"),
        of_one_holder(),
    )
