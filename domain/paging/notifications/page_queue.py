"""Queues pages, which notify a recipient about an alert or incident.

`domain/paging/notifications/batching.py` combines the queued pages of a recipient into messages,
one for each contact (`domain/paging/notifications/outbox.py`). The key of a page is unique, which
prevents duplicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select, true
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import (
    build_bulk_update,
    build_session_insert,
    split_into_batches,
)
from domain.paging.notifications.page_subjects import PageSubject, SubjectKind, find_severity_ranks
from domain.paging.notifications.recipients import (
    BATCHING_PAUSE,
    BELOW_ALL_SEVERITIES,
    PAUSE_BETWEEN_PAGES,
    find_hold_end,
    get_or_create_recipients,
    get_quiet_hours,
    schedule_recipient_batching,
)
from domain.paging.notifications.rules import AlertSelection
from domain.paging.notifications.states import MessageState
from models import ContactRule, Page, PageMessage, PageRecipient

#: Prefix for the keys of manual pages to users. Manual pages are sent even if their alert or
#: incident is acknowledged.
MANUAL_PAGE_PREFIX = "asked: "
#: Prefix for the keys of pages that follow other pages. Such pages are caused by rules for critical
#: alerts, or by holds on the remaining messages of a page.
FOLLOWING_PAGE_PREFIX = "page "
#: Condition for pages that do not follow another page.
IS_FIRST_PAGE = and_(
    Page.key.not_like(f"{FOLLOWING_PAGE_PREFIX}%"),
    Page.key.not_like(f"{MANUAL_PAGE_PREFIX}{FOLLOWING_PAGE_PREFIX}%"),
)
#: Condition for messages that may have been read: they were sent, or the outcome of an attempt is
#: unknown.
MAY_BE_READ = or_(PageMessage.outcome == MessageState.SENT.value, PageMessage.is_under_way)


class PageKind(StrEnum):
    """The purpose of a page: a firing alert or incident, or a follow-up."""

    FIRING = "firing"
    #: Message that the alert or incident was acknowledged by another user, was ignored, or has
    #: ended.
    FOLLOW_UP = "follow_up"


@dataclass(frozen=True, kw_only=True)
class NewPage:
    """A page about an alert or incident, which is sent to a user or to a channel of the project.

    `key` has at most 255 characters. A second page with the same key is not stored.
    """

    key: str
    project_id: int
    alert_id: int | None = None
    #: ID of the incident, if the page is not about an alert.
    incident_id: int | None = None
    user_id: int | None = None
    #: ID of a contact that belongs to the project.
    channel_id: int | None = None
    is_critical: bool = False

    @property
    def subject(self) -> PageSubject:
        """The alert or incident that the page is about."""
        if self.incident_id is not None:
            return PageSubject(SubjectKind.INCIDENT, self.incident_id)
        return PageSubject(SubjectKind.ALERT, self.alert_id or 0)


def queue_pages(pages: Sequence[NewPage], *, session: Session, now: datetime) -> int:
    """Store pages and return the number of new pages.

    Pages are left out if their user, channel, alert or incident no longer exists.
    """
    by_key = {page.key: page for page in pages}
    return sum(
        _queue_page_batch(part, session=session, now=now)
        for part in split_into_batches(list(by_key.values()))
    )


def cancel_pages(
    ids: Sequence[int],
    *,
    subject_kind: SubjectKind = SubjectKind.ALERT,
    keeps_asked: bool = False,
    session: Session,
    now: datetime,
) -> None:
    """Cancel the pages about alerts or incidents that no longer need attention.

    Recipients who may have received a page receive a follow-up, unless they turned follow-ups off.
    The content of a follow-up is written when the follow-up is sent. If `keeps_asked` is true,
    manual pages to users are not canceled. Use this option for acknowledged alerts.
    """
    for part in split_into_batches(sorted(set(ids))):
        kept = Page.key.not_like(f"{MANUAL_PAGE_PREFIX}%") if keeps_asked else true()
        _cancel_subject_pages(part, subject_kind, kept, session=session, now=now)


def _cancel_subject_pages(
    ids: Sequence[int],
    subject_kind: SubjectKind,
    condition: ColumnElement[bool],
    *,
    session: Session,
    now: datetime,
) -> None:
    paged = (
        subject_kind.column.in_(ids),
        condition,
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
    )
    # Batching and sending also lock recipients before pages.
    has_paged = exists().where(Page.recipient_id == PageRecipient.id, *paged)
    recipients = session.scalars(
        select(PageRecipient).where(has_paged).order_by(PageRecipient.id).with_for_update()
    ).all()
    if not recipients:
        return
    withdrawn = session.execute(
        build_bulk_update(Page)
        .where(*paged)
        .values(withdrawn_at=now)
        .returning(Page.recipient_id, subject_kind.column, Page.batch_id)
    ).all()
    left = {batch for _, _, batch in withdrawn if batch}
    has_arrived = select(PageMessage.batch_id).where(PageMessage.batch_id.in_(left), MAY_BE_READ)
    read = set(session.scalars(has_arrived)) if left else set()
    told = sorted({(recipient, number) for recipient, number, batch in withdrawn if batch in read})
    wanting = {row.id: row for row in recipients if row.wants_follow_ups}
    follow_ups = [
        _NewPageRow(
            recipient=wanting[recipient],
            key=f"follow-up of {subject_kind} {number} to {recipient} at {now.isoformat()}",
            about=PageSubject(subject_kind, number),
            urgency=PageUrgency(BELOW_ALL_SEVERITIES),
        )
        for recipient, number in told
        if number and recipient in wanting
    ]
    _insert_pages(follow_ups, PageKind.FOLLOW_UP, session=session, now=now)


def release_critical_pages(
    ids: Sequence[int],
    *,
    subject_kind: SubjectKind = SubjectKind.ALERT,
    session: Session,
    now: datetime,
) -> None:
    """Release pages delayed by quiet hours if their alerts or incidents are now critical.

    Nothing changes for recipients whose quiet hours also apply to critical alerts. Users with
    separate notification rules for critical alerts are also paged according to these rules.
    """
    for part in split_into_batches(sorted(set(ids))):
        _make_waiting_pages_critical(subject_kind.column.in_(part), session=session, now=now)
        _page_by_critical_rules(subject_kind, part, session=session, now=now)


def _make_waiting_pages_critical(
    condition: ColumnElement[bool], *, session: Session, now: datetime
) -> None:
    waiting = (
        condition,
        Page.kind == PageKind.FIRING.value,
        Page.is_critical.is_(False),
        Page.batch_id.is_(None),
        Page.withdrawn_at.is_(None),
    )
    # Batching also locks recipients before pages.
    has_waiting = exists().where(Page.recipient_id == PageRecipient.id, *waiting)
    recipients = session.scalars(
        select(PageRecipient).where(has_waiting).order_by(PageRecipient.id).with_for_update()
    ).all()
    for recipient in recipients:
        due = compute_page_due_time(
            recipient, PageKind.FIRING, PageUrgency(0, is_critical=True), now=now
        )
        earlier = case((Page.due_at > due, due), else_=Page.due_at)
        session.execute(
            build_bulk_update(Page)
            .where(Page.recipient_id == recipient.id, *waiting)
            .values(is_critical=True, due_at=earlier)
        )
        schedule_recipient_batching({recipient.id: due}, session=session)


def _page_by_critical_rules(
    subject_kind: SubjectKind, ids: Sequence[int], *, session: Session, now: datetime
) -> None:
    differs = exists().where(
        ContactRule.user_id == PageRecipient.user_id, ContactRule.alerts != AlertSelection.ALL.value
    )
    told = session.execute(
        select(PageRecipient, subject_kind.column, func.max(Page.id))
        .join(Page, Page.recipient_id == PageRecipient.id)
        .where(
            subject_kind.column.in_(ids),
            Page.kind == PageKind.FIRING.value,
            Page.is_critical.is_(False),
            Page.batch_id.is_not(None),
            Page.withdrawn_at.is_(None),
            differs,
        )
        .group_by(PageRecipient.id, subject_kind.column)
        .order_by(PageRecipient.id, subject_kind.column)
    ).all()
    urgency = PageUrgency(0, is_critical=True)
    rows = [
        _NewPageRow(
            recipient,
            f"{FOLLOWING_PAGE_PREFIX}{page_id}, now critical",
            PageSubject(subject_kind, number or 0),
            urgency,
        )
        for recipient, number, page_id in told
    ]
    _insert_pages(rows, PageKind.FIRING, session=session, now=now)


class PageUrgency(NamedTuple):
    """The severity of a page, and whether the page may be sent during quiet hours."""

    #: Severity rank of the alert or incident, where 0 is critical.
    severity: int
    #: True if the page may be sent during quiet hours.
    is_critical: bool = False


class _NewPageRow(NamedTuple):
    recipient: PageRecipient
    key: str
    about: PageSubject
    urgency: PageUrgency


def _queue_page_batch(pages: Sequence[NewPage], *, session: Session, now: datetime) -> int:
    recipients = get_or_create_recipients(
        {page.user_id for page in pages if page.user_id is not None},
        {page.channel_id for page in pages if page.channel_id is not None},
        session=session,
    )
    severities = find_severity_ranks({page.subject for page in pages}, session=session)
    rows = []
    for page in pages:
        recipient = recipients.get((page.user_id, page.channel_id))
        severity = severities.get(page.subject)
        if recipient is not None and severity is not None:
            urgency = PageUrgency(severity, page.is_critical)
            rows.append(_NewPageRow(recipient, page.key, page.subject, urgency))
    return _insert_pages(rows, PageKind.FIRING, session=session, now=now)


def _insert_pages(
    rows: Sequence[_NewPageRow], kind: PageKind, *, session: Session, now: datetime
) -> int:
    if not rows:
        return 0
    # The due time is computed only once for each recipient.
    due = {
        (row.recipient.id, row.urgency): compute_page_due_time(
            row.recipient, kind, row.urgency, now=now
        )
        for row in {(row.recipient.id, row.urgency): row for row in rows}.values()
    }
    values = [
        {
            "key": row.key,
            "recipient_id": row.recipient.id,
            **row.about.columns,
            "kind": kind.value,
            "is_critical": row.urgency.is_critical,
            "created_at": now,
            "due_at": due[row.recipient.id, row.urgency],
        }
        for row in rows
    ]
    stored = session.execute(
        build_session_insert(Page, session=session)
        .on_conflict_do_nothing(index_elements=[Page.key])
        .returning(Page.recipient_id, Page.due_at),
        values,
    ).all()
    earliest: dict[int, datetime] = {}
    for recipient_id, due_at in stored:
        earliest[recipient_id] = min(due_at, earliest.get(recipient_id, due_at))
    schedule_recipient_batching(earliest, session=session)
    return len(stored)


def compute_page_due_time(
    recipient: PageRecipient, kind: PageKind, urgency: PageUrgency, *, now: datetime
) -> datetime:
    """Return the time when a page that is queued now becomes due.

    The time depends on quiet hours and on the pause after the last page.
    """
    quiet = get_quiet_hours(recipient)
    begin = find_hold_end(quiet, is_critical=urgency.is_critical, now=now) or now
    earliest = find_pause_end(recipient, kind, severity=urgency.severity, now=now)
    return max(begin + BATCHING_PAUSE, earliest or begin)


def find_pause_end(
    recipient: PageRecipient, kind: PageKind, *, severity: int, now: datetime
) -> datetime | None:
    """Return the end of the pause after the last page to a recipient, or None.

    A page that is more severe than the last page does not wait. Follow-ups wait after any message,
    but do not delay pages about firing alerts.
    """
    if kind is PageKind.FOLLOW_UP:
        return _compute_pause_end(recipient.last_message_at, now)
    last_severity = recipient.last_page_severity
    is_worse = last_severity is not None and severity < last_severity
    return None if is_worse else _compute_pause_end(recipient.last_page_at, now)


def _compute_pause_end(last: datetime | None, now: datetime) -> datetime | None:
    # A time in the future was recorded by a clock that was ahead. It must not start a pause, since
    # the end of the pause would move with each check.
    return None if last is None or last > now else last + PAUSE_BETWEEN_PAGES
