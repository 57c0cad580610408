"""Contacts of people, channels of projects, and the pages that are sent to them."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    false,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId, Numbered, belongs_to, partial_index


class Contact(Numbered):
    """Where a person, a project or a group gets messages, and the state of their delivery."""

    __tablename__ = "contacts"

    user_id: Mapped[int | None] = belongs_to("users", index=True)
    project_id: Mapped[int | None] = belongs_to("projects", index=True)
    group_id: Mapped[int | None] = belongs_to("groups", index=True)
    #: email or apprise.
    type: Mapped[str] = mapped_column(String(16))
    label: Mapped[str] = mapped_column(String(100))
    #: Encrypted with SECRET_KEY, since such an address holds credentials. NULL: the e-mail address
    #: of the account, for people who have no other contact.
    address_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: The address without its secrets.
    shown_address: Mapped[str] = mapped_column(String(255))
    #: Contacts with the same one share a service, and are slow or away together.
    lane: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    #: NULL: gets the code that confirms it, and nothing else.
    confirmed_at: Mapped[datetime | None]
    #: The code, encrypted with SECRET_KEY, until when it counts, and how often it was guessed.
    code_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: The authorization of the application that created it, until the user confirms it. When that
    #: access ends, the contact has to be confirmed again.
    authorization_id: Mapped[int | None] = mapped_column(BigId)
    code_expires_at: Mapped[datetime | None]
    code_tries: Mapped[int] = mapped_column(SmallInteger, default=0)
    #: When its waiting messages are sent; NULL if none waits.
    next_try_at: Mapped[datetime | None]
    #: The number of the last claim, and until when no other worker may send.
    claim: Mapped[int] = mapped_column(BigId, default=0)
    claimed_until: Mapped[datetime | None]
    #: Failed attempts since the last success, the first and the last of them.
    tries: Mapped[int] = mapped_column(Integer, default=0)
    failing_since: Mapped[datetime | None]
    last_failed_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
    last_sent_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint(
            "(CASE WHEN user_id IS NULL THEN 0 ELSE 1 END)"
            " + (CASE WHEN project_id IS NULL THEN 0 ELSE 1 END)"
            " + (CASE WHEN group_id IS NULL THEN 0 ELSE 1 END) = 1",
            name="one_holder",
        ),
        partial_index("ix_contacts_next_try_at", "next_try_at", where="next_try_at IS NOT NULL"),
        # One each, however many workers find that somebody has no other contact.
        partial_index(
            "uq_contacts_account_email", "user_id", unique=True, where="address_ciphertext IS NULL"
        ),
        # Escalation policies name channels by their id, so none is used again.
        {"sqlite_autoincrement": True},
    )


class ContactRule(Numbered):
    """Which alerts a person is told of by a contact, and how long after the page left.

    Somebody without any is told by all contacts at once.
    """

    __tablename__ = "contact_rules"

    user_id: Mapped[int] = belongs_to("users", index=True)
    contact_id: Mapped[int] = belongs_to("contacts", index=True)
    #: A `domain.paging.notifications.rules.Concern`: all, critical or other.
    alerts: Mapped[str] = mapped_column(String(16))
    delay_minutes: Mapped[int] = mapped_column(SmallInteger)
    #: `{"start", "end": minutes after midnight, "weekdays": [0 for Monday, …]}` by the person's
    #: time zone; NULL for any time.
    only: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class PageRecipient(Numbered):
    """A person, or a channel of a project, that is paged, and when that may happen next."""

    __tablename__ = "page_recipients"

    user_id: Mapped[int | None] = belongs_to("users", unique=True)
    contact_id: Mapped[int | None] = belongs_to("contacts", unique=True)
    #: When its waiting pages leave; NULL if none waits.
    due_at: Mapped[datetime | None]
    #: The last message about alerts that fire, and the last one at all.
    last_page_at: Mapped[datetime | None]
    last_message_at: Mapped[datetime | None]
    #: The rank of the worst severity in the last message about alerts that fire.
    last_page_severity: Mapped[int | None] = mapped_column(SmallInteger)
    #: Quiet hours in minutes after midnight of the time zone; NULL for none.
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC")
    quiet_from: Mapped[int | None] = mapped_column(SmallInteger)
    quiet_until: Mapped[int | None] = mapped_column(SmallInteger)
    #: Whether pages about critical alerts leave in quiet hours as well.
    critical_breaks_quiet: Mapped[bool] = mapped_column(default=True)
    #: Whether it is told when an alert that it was paged for was acknowledged or has ended.
    wants_follow_ups: Mapped[bool] = mapped_column(default=True)

    __table_args__ = (
        CheckConstraint("(user_id IS NULL) <> (contact_id IS NULL)", name="one_kind"),
        partial_index("ix_page_recipients_due_at", "due_at", where="due_at IS NOT NULL"),
    )


class PageBatch(Numbered):
    """The pages that left together for a recipient, as one message to each of its contacts."""

    __tablename__ = "page_batches"

    recipient_id: Mapped[int] = belongs_to("page_recipients")
    created_at: Mapped[datetime] = mapped_column(index=True)

    __table_args__ = (Index("ix_page_batches_recipient_id_id", "recipient_id", "id"),)


class Page(Numbered):
    """What one recipient is to be told of one alert, or of one incident."""

    __tablename__ = "pages"

    #: Identifies the page: a second one with the same key is not stored.
    key: Mapped[str] = mapped_column(String(255), unique=True)
    recipient_id: Mapped[int] = belongs_to("page_recipients")
    #: One of both has a value.
    alert_id: Mapped[int | None] = belongs_to("alerts", index=True)
    incident_id: Mapped[int | None] = belongs_to("incidents")
    #: `firing`, or `follow_up` for what became of it.
    kind: Mapped[str] = mapped_column(String(16))
    is_critical: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    due_at: Mapped[datetime]
    #: NULL until it leaves.
    batch_id: Mapped[int | None] = belongs_to("page_batches", index=True)
    #: Since when it is not sent any more.
    withdrawn_at: Mapped[datetime | None]
    #: What holds it back while it waits. In a batch: why the unsent messages leave it out.
    held_by: Mapped[str | None] = mapped_column(Text)
    #: `accepted` by a contact, or `failed` at all of them so far; NULL until then.
    outcome: Mapped[str | None] = mapped_column(String(16))
    outcome_at: Mapped[datetime | None]
    #: Whether the escalation is still to be told of the outcome.
    has_news: Mapped[bool] = mapped_column(default=False, server_default=false())

    __table_args__ = (
        partial_index(
            "ix_pages_waiting",
            "recipient_id",
            "due_at",
            where="batch_id IS NULL AND withdrawn_at IS NULL",
        ),
        Index("ix_pages_created_at", "created_at"),
        partial_index("ix_pages_incident_id", "incident_id", where="incident_id IS NOT NULL"),
        partial_index("ix_pages_news", "id", where="has_news"),
    )


class PageMessage(Numbered):
    """A message to one contact: pages, a notice, the code that confirms it, or a test."""

    __tablename__ = "page_messages"

    contact_id: Mapped[int] = belongs_to("contacts")
    #: page, notice, code or test.
    kind: Mapped[str] = mapped_column(String(16))
    #: NULL for all but pages.
    batch_id: Mapped[int | None] = belongs_to("page_batches", index=True)
    created_at: Mapped[datetime]
    #: When it leaves by a rule of the person; NULL for at once.
    due_at: Mapped[datetime | None]
    #: NULL while it waits.
    ended_at: Mapped[datetime | None]
    #: sent, given_up or withdrawn; NULL while it waits.
    outcome: Mapped[str | None] = mapped_column(String(16))
    tries: Mapped[int] = mapped_column(Integer, default=0)
    #: Whether an attempt began of which nobody knows how it ended, such as that of a killed worker.
    is_under_way: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: The first message of that attempt: those with the same one are sent again together. NULL if
    #: every attempt is known to have failed.
    attempt_id: Mapped[int | None] = mapped_column(BigId)
    last_error: Mapped[str | None] = mapped_column(Text)
    #: Why it is withdrawn if nothing else is left to be said, such as lost access or a silence.
    cancelled_because: Mapped[str | None] = mapped_column(Text)
    #: Of a notice, which has no pages that say what is true when it is sent. A contact gets one
    #: with each key.
    key: Mapped[str | None] = mapped_column(String(255))
    subject: Mapped[str | None] = mapped_column(String(255))
    text: Mapped[str | None] = mapped_column(Text)
    #: The person, project and alerts of a notice, which are checked before each attempt.
    about: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    __table_args__ = (
        partial_index("ix_page_messages_waiting", "contact_id", "id", where="ended_at IS NULL"),
        # Of rules, whose times a clock that was wrong may have written.
        partial_index(
            "ix_page_messages_due_at", "due_at", where="due_at IS NOT NULL AND ended_at IS NULL"
        ),
        Index("ix_page_messages_contact_id_id", "contact_id", "id"),
        Index("uq_page_messages_contact_id_key", "contact_id", "key", unique=True),
        Index("ix_page_messages_ended_at", "ended_at"),
    )


class PageTotal(Base):
    """How many messages to contacts of a type ended in a way, those that were pruned included."""

    __tablename__ = "page_totals"

    type: Mapped[str] = mapped_column(String(16), primary_key=True)
    outcome: Mapped[str] = mapped_column(String(16), primary_key=True)
    count: Mapped[int] = mapped_column(BigId, default=0)
