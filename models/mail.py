"""The outbox for email."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import (
    BaseWithId,
    NamespaceOwnedMixin,
    build_cascading_foreign_key,
    build_one_owner_constraint,
    build_partial_index,
)


class Mail(BaseWithId):
    """An email to one recipient, which the worker sends."""

    __tablename__ = "mails"

    #: Unique key of the message. A second message with the same key is not stored.
    key: Mapped[str] = mapped_column(String(255), unique=True)
    recipient: Mapped[str] = mapped_column(String(255))
    subject: Mapped[str] = mapped_column(String(255))
    #: Text encrypted with SECRET_KEY, because it may contain a link that signs a user in. Such
    #: links are removed when the message is sent or fails permanently. NULL until a worker encrypts
    #: a message that was queued by a host running an older release.
    text_ciphertext: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: Time of the next attempt. NULL once the message has been sent or has failed permanently.
    send_at: Mapped[datetime | None] = mapped_column(index=True)
    tries: Mapped[int] = mapped_column(Integer, default=0)
    sent_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
    #: User, projects and alerts of a notice, which are checked before each attempt
    #: (`domain/paging/notifications/notice_checks.py`). NULL for other messages.
    about: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Columns for older releases, whose workers send every row that is due according to these
    #: columns. The text is empty once it is encrypted.
    text: Mapped[str] = mapped_column(Text, default="")
    next_try_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (build_partial_index("ix_mails_in_clear", "id", where="text <> ''"),)


class AssignmentNotice(BaseWithId):
    """A pending notice to a user about an assignment to an alert or incident."""

    __tablename__ = "assignment_notices"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: Alert or incident. Exactly one of the two columns is set.
    alert_id: Mapped[int | None] = build_cascading_foreign_key("alerts", index=True)
    incident_id: Mapped[int | None] = build_cascading_foreign_key("incidents", index=True)
    #: Name of the user who made the assignment. Empty for commands.
    by_name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]


class KnownGaps(NamespaceOwnedMixin, BaseWithId):
    """The paging gaps about which the maintainers of a project or group were notified."""

    __tablename__ = "known_gaps"

    #: Size of each gap by key (`domain.paging.escalations.paging_gaps`).
    gaps: Mapped[dict[str, int]] = mapped_column(JSON)

    __table_args__ = (
        UniqueConstraint("project_id"),
        UniqueConstraint("group_id"),
        build_one_owner_constraint(),
    )
