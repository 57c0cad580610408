"""Users' contacts, notification channels, and the pages that are sent to contacts and channels."""

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

from models.base import (
    Base,
    BaseWithId,
    BigId,
    ClaimedRow,
    build_cascading_foreign_key,
    build_partial_index,
)


class Contact(ClaimedRow):
    """An address for messages to a user, project or group, and its delivery status."""

    __tablename__ = "contacts"

    user_id: Mapped[int | None] = build_cascading_foreign_key("users", index=True)
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects", index=True)
    group_id: Mapped[int | None] = build_cascading_foreign_key("groups", index=True)
    #: Type: email, apprise or device.
    type: Mapped[str] = mapped_column(String(16))
    label: Mapped[str] = mapped_column(String(100))
    #: Address encrypted with SECRET_KEY, because some addresses contain credentials. NULL stands
    #: for the account's email address, which is used for users without another contact.
    address_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: Address without its secrets.
    shown_address: Mapped[str] = mapped_column(String(255))
    #: Name of the service. Contacts of the same service are slow or unavailable at the same time.
    lane: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    #: Time of confirmation. An unconfirmed contact receives only its confirmation code.
    confirmed_at: Mapped[datetime | None]
    #: Confirmation code, encrypted with SECRET_KEY.
    code_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: Authorization of the application that created the contact, until the user confirms it. When
    #: the application loses access, the contact must be confirmed again.
    authorization_id: Mapped[int | None] = mapped_column(BigId)
    code_expires_at: Mapped[datetime | None]
    code_tries: Mapped[int] = mapped_column(SmallInteger, default=0)
    #: Time of the next attempt. NULL if no message is queued.
    next_try_at: Mapped[datetime | None]
    last_sent_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint(
            "(CASE WHEN user_id IS NULL THEN 0 ELSE 1 END)"
            " + (CASE WHEN project_id IS NULL THEN 0 ELSE 1 END)"
            " + (CASE WHEN group_id IS NULL THEN 0 ELSE 1 END) = 1",
            name="one_holder",
        ),
        build_partial_index(
            "ix_contacts_next_try_at", "next_try_at", where="next_try_at IS NOT NULL"
        ),
        # This index allows one contact for the account's email address per user, even if several
        # workers create the contact concurrently.
        build_partial_index(
            "uq_contacts_account_email", "user_id", unique=True, where="address_ciphertext IS NULL"
        ),
        # Escalation policies refer to channels by ID, so IDs must not be reused.
        {"sqlite_autoincrement": True},
    )


class ContactRule(BaseWithId):
    """A rule that selects the alerts that a contact receives, and sets a delay for them.

    For users without rules, all messages are sent to all contacts immediately.
    """

    __tablename__ = "contact_rules"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    contact_id: Mapped[int] = build_cascading_foreign_key("contacts", index=True)
    #: Value of `domain.paging.notifications.rules.AlertSelection`: all, critical or other.
    alerts: Mapped[str] = mapped_column(String(16))
    delay_minutes: Mapped[int] = mapped_column(SmallInteger)
    #: Restriction `{"start", "end": minutes after midnight, "weekdays": [0 for Monday, …]}` in the
    #: user's time zone. NULL if the rule always applies.
    only: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class PageRecipient(BaseWithId):
    """A user or channel that is paged, and the time of the next message."""

    __tablename__ = "page_recipients"

    user_id: Mapped[int | None] = build_cascading_foreign_key("users", unique=True)
    contact_id: Mapped[int | None] = build_cascading_foreign_key("contacts", unique=True)
    #: Time at which the queued pages are sent. NULL if no page is queued.
    due_at: Mapped[datetime | None]
    #: Times of the last message about firing alerts, and of the last message of any kind.
    last_page_at: Mapped[datetime | None]
    last_message_at: Mapped[datetime | None]
    #: Rank of the highest severity in the last message about firing alerts.
    last_page_severity: Mapped[int | None] = mapped_column(SmallInteger)
    #: Time zone of the quiet hours, and their start and end in minutes after midnight. The start
    #: and end are NULL if there are no quiet hours.
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC")
    quiet_from: Mapped[int | None] = mapped_column(SmallInteger)
    quiet_until: Mapped[int | None] = mapped_column(SmallInteger)
    #: True if pages about critical alerts are also sent during quiet hours.
    critical_breaks_quiet: Mapped[bool] = mapped_column(default=True)
    #: True if the recipient receives follow-ups after a page, when the alert is acknowledged or
    #: ends.
    wants_follow_ups: Mapped[bool] = mapped_column(default=True)

    __table_args__ = (
        CheckConstraint("(user_id IS NULL) <> (contact_id IS NULL)", name="one_kind"),
        build_partial_index("ix_page_recipients_due_at", "due_at", where="due_at IS NOT NULL"),
    )


class PageBatch(BaseWithId):
    """Pages that were sent to a recipient together, as one message to each contact."""

    __tablename__ = "page_batches"

    recipient_id: Mapped[int] = build_cascading_foreign_key("page_recipients")
    created_at: Mapped[datetime] = mapped_column(index=True)

    __table_args__ = (Index("ix_page_batches_recipient_id_id", "recipient_id", "id"),)


class Page(BaseWithId):
    """A notification about an alert or incident for one recipient."""

    __tablename__ = "pages"

    #: Unique key of the page. A second page with the same key is not stored.
    key: Mapped[str] = mapped_column(String(255), unique=True)
    recipient_id: Mapped[int] = build_cascading_foreign_key("page_recipients")
    #: Alert or incident. Exactly one of the two columns is set.
    alert_id: Mapped[int | None] = build_cascading_foreign_key("alerts", index=True)
    incident_id: Mapped[int | None] = build_cascading_foreign_key("incidents")
    #: Kind: `firing`, or `follow_up` for a later change to the alert.
    kind: Mapped[str] = mapped_column(String(16))
    is_critical: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    due_at: Mapped[datetime]
    #: Batch of the page. NULL until the page is added to a batch.
    batch_id: Mapped[int | None] = build_cascading_foreign_key("page_batches", index=True)
    #: Time at which the page was canceled.
    withdrawn_at: Mapped[datetime | None]
    #: Reason why the page is held back. For a page in a batch, the reason why unsent messages omit
    #: the page.
    held_by: Mapped[str | None] = mapped_column(Text)
    #: Result: `accepted` by a contact, or `failed` for all contacts so far. NULL if there is no
    #: result yet.
    outcome: Mapped[str | None] = mapped_column(String(16))
    outcome_at: Mapped[datetime | None]
    #: True if the escalation still has to process the result.
    has_news: Mapped[bool] = mapped_column(default=False, server_default=false())

    __table_args__ = (
        build_partial_index(
            "ix_pages_waiting",
            "recipient_id",
            "due_at",
            where="batch_id IS NULL AND withdrawn_at IS NULL",
        ),
        Index("ix_pages_created_at", "created_at"),
        build_partial_index("ix_pages_incident_id", "incident_id", where="incident_id IS NOT NULL"),
        build_partial_index("ix_pages_news", "id", where="has_news"),
    )


class PageMessage(BaseWithId):
    """A message to one contact: pages, a notice, a confirmation code, or a test message."""

    __tablename__ = "page_messages"

    contact_id: Mapped[int] = build_cascading_foreign_key("contacts")
    #: Kind: page, notice, code or test.
    kind: Mapped[str] = mapped_column(String(16))
    #: Batch of pages in the message. NULL for other kinds of messages.
    batch_id: Mapped[int | None] = build_cascading_foreign_key("page_batches", index=True)
    created_at: Mapped[datetime]
    #: Time until which a notification rule delays the message. NULL if it is not delayed.
    due_at: Mapped[datetime | None]
    #: Time at which the message was sent, failed or canceled. NULL while it is queued.
    ended_at: Mapped[datetime | None]
    #: Result: sent, given_up, failed or withdrawn, or `again` if a message that was given up was
    #: queued again. NULL while the message is queued.
    outcome: Mapped[str | None] = mapped_column(String(16))
    tries: Mapped[int] = mapped_column(Integer, default=0)
    #: True if the result of a started attempt is unknown, for example because the worker was
    #: killed.
    is_under_way: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: ID of the first message in the attempt with an unknown result. Messages of the same attempt
    #: are sent again together. NULL if all attempts are known to have failed.
    attempt_id: Mapped[int | None] = mapped_column(BigId)
    last_error: Mapped[str | None] = mapped_column(Text)
    #: Reason for canceling the message if it has no content left, such as lost access or a
    #: silence.
    cancelled_because: Mapped[str | None] = mapped_column(Text)
    #: Key, subject and text of a notice. A contact receives at most one notice with the same key.
    key: Mapped[str | None] = mapped_column(String(255))
    subject: Mapped[str | None] = mapped_column(String(255))
    text: Mapped[str | None] = mapped_column(Text)
    #: User, projects and alerts of a notice, which are checked before each attempt.
    about: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    __table_args__ = (
        build_partial_index(
            "ix_page_messages_waiting", "contact_id", "id", where="ended_at IS NULL"
        ),
        # This index finds due times that may have been set by a clock that was ahead.
        build_partial_index(
            "ix_page_messages_due_at", "due_at", where="due_at IS NOT NULL AND ended_at IS NULL"
        ),
        Index("ix_page_messages_contact_id_id", "contact_id", "id"),
        Index("uq_page_messages_contact_id_key", "contact_id", "key", unique=True),
        Index("ix_page_messages_ended_at", "ended_at"),
    )


class PageTotal(Base):
    """The number of messages by contact type and outcome, including pruned messages."""

    __tablename__ = "page_totals"

    type: Mapped[str] = mapped_column(String(16), primary_key=True)
    outcome: Mapped[str] = mapped_column(String(16), primary_key=True)
    count: Mapped[int] = mapped_column(BigId, default=0)


class PushKey(BaseWithId):
    """The instance's key pair that signs requests to browsers' push services (VAPID)."""

    __tablename__ = "push_keys"

    #: Encrypted private JWK.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
