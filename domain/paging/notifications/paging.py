"""Pages: what a recipient is to be told of an alert or incident, queued by whoever decides it.

`domain/paging/notifications/batching.py` combines queued pages by recipient into messages, one for
each contact (`domain/paging/notifications/outbox.py`). A page has a key, which is stored once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select, true
from sqlalchemy.orm import Session

from domain.core.database.rows import insert_into, slices, update_rows
from domain.paging.notifications.page_targets import About, Subject, severities_of
from domain.paging.notifications.recipients import (
    BETWEEN_PAGES,
    GATHERING_PAUSE,
    NO_SEVERITY,
    RecipientKey,
    held_until,
    quiet_hours_of,
    recipient_rows,
    wake_recipients,
)
from domain.paging.notifications.rules import Concern
from domain.paging.notifications.states import MessageState
from models import ContactRule, Page, PageMessage, PageRecipient

#: How the keys of pages begin for which a person was named by hand. They leave whether or not what
#: they are about is acknowledged.
ASKED = "asked: "
#: How the keys of pages begin that follow others: by the rules for critical alerts, or since
#: something held back the rest of their messages.
AGAIN = "page "
#: Whether a page is the only one, or the first of several.
IS_FIRST = and_(Page.key.not_like(f"{AGAIN}%"), Page.key.not_like(f"{ASKED}{AGAIN}%"))
#: Whether somebody may have read a message: it was sent, or nobody knows how an attempt ended.
MAY_BE_READ = or_(PageMessage.outcome == MessageState.SENT.value, PageMessage.is_under_way)


class PageKind(StrEnum):
    """What a page is about."""

    FIRING = "firing"
    #: What it is about was acknowledged by somebody else, was ignored, or has ended.
    FOLLOW_UP = "follow_up"


@dataclass(frozen=True, kw_only=True)
class NewPage:
    """A page about an alert or incident to a person, or to a channel of its project.

    A second page with the same `key`, of at most 255 characters, is not stored.
    """

    key: str
    project_id: int
    alert_id: int | None = None
    #: In place of an alert.
    incident_id: int | None = None
    user_id: int | None = None
    #: The id of a contact that belongs to the project.
    channel_id: int | None = None
    is_critical: bool = False

    @property
    def about(self) -> About:
        """What it is about."""
        if self.incident_id is not None:
            return About(Subject.INCIDENT, self.incident_id)
        return About(Subject.ALERT, self.alert_id or 0)


def queue_pages(pages: Sequence[NewPage], *, session: Session, now: datetime) -> int:
    """Store pages and return how many of them are new.

    Those to users and channels, or about what does not exist any more are left out.
    """
    by_key = {page.key: page for page in pages}
    return sum(
        _queue(part, PageKind.FIRING, session=session, now=now)
        for part in slices(list(by_key.values()))
    )


def withdraw_pages(
    ids: Sequence[int],
    *,
    about: Subject = Subject.ALERT,
    keeps_asked: bool = False,
    session: Session,
    now: datetime,
) -> None:
    """Withdraw the pages of alerts or incidents that nobody needs to look at any more.

    Of acknowledged ones, those to people who were asked for are kept.
    What has not left does not leave. Recipients who got it, or may have got it, are told what
    became of it, unless they do not want that; the message says what is true when it is sent.
    """
    for part in slices(sorted(set(ids))):
        kept = Page.key.not_like(f"{ASKED}%") if keeps_asked else true()
        _withdraw(part, about, kept, session=session, now=now)


def _withdraw(
    ids: Sequence[int],
    about: Subject,
    which: ColumnElement[bool],
    *,
    session: Session,
    now: datetime,
) -> None:
    paged = (
        about.column.in_(ids),
        which,
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
    )
    # Gathering locks recipients before pages as well, and who begins to send does before it reads.
    has_paged = exists().where(Page.recipient_id == PageRecipient.id, *paged)
    recipients = session.scalars(
        select(PageRecipient).where(has_paged).order_by(PageRecipient.id).with_for_update()
    ).all()
    if not recipients:
        return
    withdrawn = session.execute(
        update_rows(Page)
        .where(*paged)
        .values(withdrawn_at=now)
        .returning(Page.recipient_id, about.column, Page.batch_id)
    ).all()
    left = {batch for _, _, batch in withdrawn if batch}
    has_arrived = select(PageMessage.batch_id).where(PageMessage.batch_id.in_(left), MAY_BE_READ)
    read = set(session.scalars(has_arrived)) if left else set()
    told = sorted({(recipient, number) for recipient, number, batch in withdrawn if batch in read})
    wanting = {row.id: row for row in recipients if row.wants_follow_ups}
    follow_ups = [
        _NewRow(
            recipient=wanting[recipient],
            key=f"follow-up of {about} {number} to {recipient} at {now.isoformat()}",
            about=About(about, number),
            urgency=_FOLLOW_UP,
        )
        for recipient, number in told
        if number and recipient in wanting
    ]
    _insert(follow_ups, PageKind.FOLLOW_UP, session=session, now=now)


def pages_became_critical(
    ids: Sequence[int], *, about: Subject = Subject.ALERT, session: Session, now: datetime
) -> None:
    """Let go of pages that quiet hours hold back, of alerts or incidents that are critical now.

    Nothing changes for recipients who want no pages in quiet hours at all. People whose rules for
    critical alerts are others than those by which they were told are told by these as well.
    """
    for part in slices(sorted(set(ids))):
        _raise(about.column.in_(part), session=session, now=now)
        _page_by_other_rules(about, part, session=session, now=now)


def _raise(which: ColumnElement[bool], *, session: Session, now: datetime) -> None:
    waiting = (
        which,
        Page.kind == PageKind.FIRING.value,
        Page.is_critical.is_(False),
        Page.batch_id.is_(None),
        Page.withdrawn_at.is_(None),
    )
    # Gathering locks recipients before pages as well.
    has_waiting = exists().where(Page.recipient_id == PageRecipient.id, *waiting)
    recipients = session.scalars(
        select(PageRecipient).where(has_waiting).order_by(PageRecipient.id).with_for_update()
    ).all()
    for recipient in recipients:
        due = due_at(recipient, PageKind.FIRING, Urgency(0, is_critical=True), now=now)
        earlier = case((Page.due_at > due, due), else_=Page.due_at)
        session.execute(
            update_rows(Page)
            .where(Page.recipient_id == recipient.id, *waiting)
            .values(is_critical=True, due_at=earlier)
        )
        wake_recipients({recipient.id: due}, session=session)


def _page_by_other_rules(
    about: Subject, ids: Sequence[int], *, session: Session, now: datetime
) -> None:
    differs = exists().where(
        ContactRule.user_id == PageRecipient.user_id, ContactRule.alerts != Concern.ALL.value
    )
    told = session.execute(
        select(PageRecipient, about.column, func.max(Page.id))
        .join(Page, Page.recipient_id == PageRecipient.id)
        .where(
            about.column.in_(ids),
            Page.kind == PageKind.FIRING.value,
            Page.is_critical.is_(False),
            Page.batch_id.is_not(None),
            Page.withdrawn_at.is_(None),
            differs,
        )
        .group_by(PageRecipient.id, about.column)
        .order_by(PageRecipient.id, about.column)
    ).all()
    urgency = Urgency(0, is_critical=True)
    rows = [
        _NewRow(recipient, f"{AGAIN}{page_id}, now critical", About(about, number or 0), urgency)
        for recipient, number, page_id in told
    ]
    _insert(rows, PageKind.FIRING, session=session, now=now)


class Urgency(NamedTuple):
    """How urgent a page is."""

    #: The rank of the severity of what it is about: 0 for critical.
    severity: int
    #: Whether it may break quiet hours.
    is_critical: bool = False


class _NewRow(NamedTuple):
    recipient: PageRecipient
    key: str
    about: About
    urgency: Urgency


def _queue(pages: Sequence[NewPage], kind: PageKind, *, session: Session, now: datetime) -> int:
    recipients = recipient_rows(
        {page.user_id for page in pages if page.user_id is not None},
        {page.channel_id for page in pages if page.channel_id is not None},
        session=session,
    )
    severities = severities_of({page.about for page in pages}, session=session)
    rows = _rows((page for page in pages if page.about in severities), recipients, severities)
    return _insert(rows, kind, session=session, now=now)


def _rows(
    pages: Iterable[NewPage],
    recipients: Mapping[RecipientKey, PageRecipient],
    severities: Mapping[About, int],
) -> list[_NewRow]:
    found = ((page, recipients.get((page.user_id, page.channel_id))) for page in pages)
    return [
        _NewRow(row, page.key, page.about, Urgency(severities[page.about], page.is_critical))
        for page, row in found
        if row is not None
    ]


def _insert(rows: Sequence[_NewRow], kind: PageKind, *, session: Session, now: datetime) -> int:
    if not rows:
        return 0
    due = _Due(kind, now)
    values = [
        {
            "key": row.key,
            "recipient_id": row.recipient.id,
            **row.about.columns,
            "kind": kind.value,
            "is_critical": row.urgency.is_critical,
            "created_at": now,
            "due_at": due.at(row.recipient, row.urgency),
        }
        for row in rows
    ]
    stored = session.execute(
        insert_into(Page, session=session)
        .on_conflict_do_nothing(index_elements=[Page.key])
        .returning(Page.recipient_id, Page.due_at),
        values,
    ).all()
    earliest: dict[int, datetime] = {}
    for recipient_id, due_at in stored:
        earliest[recipient_id] = min(due_at, earliest.get(recipient_id, due_at))
    wake_recipients(earliest, session=session)
    return len(stored)


class _Due:
    """When pages that are queued now leave, looked up once for each recipient."""

    def __init__(self, kind: PageKind, now: datetime) -> None:
        self._kind = kind
        self._now = now
        self._known: dict[tuple[int, Urgency], datetime] = {}

    def at(self, recipient: PageRecipient, urgency: Urgency) -> datetime:
        known = self._known.get((recipient.id, urgency))
        if known is None:
            known = due_at(recipient, self._kind, urgency, now=self._now)
            self._known[recipient.id, urgency] = known
        return known


#: How urgent it is to learn what became of an alert: no message is less so.
_FOLLOW_UP = Urgency(NO_SEVERITY)


def due_at(
    recipient: PageRecipient, kind: PageKind, urgency: Urgency, *, now: datetime
) -> datetime:
    """Return when a page leaves that is queued now: after quiet hours, and after the last one."""
    quiet = quiet_hours_of(recipient)
    begin = held_until(quiet, is_critical=urgency.is_critical, now=now) or now
    earliest = earliest_leave(recipient, kind, severity=urgency.severity, now=now)
    return max(begin + GATHERING_PAUSE, earliest or begin)


def earliest_leave(
    recipient: PageRecipient, kind: PageKind, *, severity: int, now: datetime
) -> datetime | None:
    """Return until when the pages of a recipient wait for each other, if there was one before.

    What is more severe than the last page does not wait for it. Follow-ups wait for every message,
    but do not hold back a page about an alert that fires.
    """
    if kind is PageKind.FOLLOW_UP:
        return _pause_after(recipient.last_message_at, now)
    last_severity = recipient.last_page_severity
    is_worse = last_severity is not None and severity < last_severity
    return None if is_worse else _pause_after(recipient.last_page_at, now)


def _pause_after(last: datetime | None, now: datetime) -> datetime | None:
    # A time ahead of now comes from a clock that was wrong. It holds nothing back: the end of a
    # pause that began now would move on with each look.
    return None if last is None or last > now else last + BETWEEN_PAGES
