"""Corrects times that were stored by a clock that ran ahead, so that nothing waits for them.

A time is wrong if it is further ahead than allowed, or if its row was written in the future. It was
stored by a host whose clock was wrong, or before the clock was set back. The waiting item becomes
due now, so no other code has to distrust stored times.

The times of alerts are an exception, because no index would find them. They stay as they were
received, and code that waits for them checks them (`domain/paging/silences/flapping.py`). Times
that are only displayed are not corrected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    case,
    exists,
    false,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.alerts import change_feed
from domain.core.clock import CLOCK_TOLERANCE, date_and_time
from domain.core.database.rows import update_rows
from domain.core.hosts import CLOCK_CORRECTION, last_turn, record_turn
from domain.core.schedule_conditions import NOW, Moment, in_milliseconds, later, moments
from domain.delivery.mail import outbox as mail
from domain.delivery.outgoing.claims import CLAIM_LIFETIME, LONGEST_PAUSE
from domain.heartbeats.pings import WAIT_MS
from domain.heartbeats.states import milliseconds
from domain.oauth.openid import backchannel_logout
from domain.paging.notifications.outbox import CLAIM_LIFETIME as CONTACT_CLAIM
from domain.paging.notifications.queueing import LONGEST_PAUSE as CONTACT_PAUSE
from domain.paging.notifications.recipients import (
    GATHERING_PAUSE,
    held_until,
    quiet_hours_of,
    wake_recipients,
)
from domain.paging.notifications.rules import LONGEST_DELAY
from domain.paging.notifications.send_checks import ARCHIVED, LATEST_LOOK
from domain.registry import removal
from models import (
    AlertChange,
    AuditStream,
    BackchannelSession,
    Contact,
    Heartbeat,
    IdempotentRequest,
    Mail,
    Page,
    PageMessage,
    PageRecipient,
    RegistryRemoval,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookIncidentChange,
)

#: Time for which operators see a notice of a correction.
_TOLD_FOR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_NONE = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A column with due times: the condition for wrong times, and their correction."""

    name: str
    table: type[Any]
    is_wrong: Callable[[Moment], ColumnElement[bool]]
    #: Function that returns the new values of columns.
    values: Callable[[datetime], Mapping[str, Any]]


def _gate(
    column: InstrumentedAttribute[Any],
    most: timedelta,
    written: InstrumentedAttribute[Any] | None = None,
    among: ColumnElement[bool] | None = None,
) -> Gate:
    """Return the gate of a column that can be at most `most` ahead.

    `written` is the column with the time at which the row was written. If that is in the future,
    any future time of `column` is wrong.
    """

    def is_wrong(now: Moment) -> ColumnElement[bool]:
        latest = later(now, CLOCK_TOLERANCE)
        is_of_wrong_clock = false() if written is None else written > latest
        # The first condition makes the database use the index of the column.
        found = column > latest, or_(column > later(now, CLOCK_TOLERANCE + most), is_of_wrong_clock)
        return and_(*found, *(() if among is None else (among,)))

    def values(now: datetime) -> Mapping[str, Any]:
        if written is None:
            return {column.key: now}
        return {column.key: now, written.key: case((written > now, now), else_=written)}

    table: Any = column.class_
    name = f"{table.__tablename__}.{column.key}"
    return Gate(name=name, table=table, is_wrong=is_wrong, values=values)


def _heartbeat_is_wrong(now: Moment) -> ColumnElement[bool]:
    latest = later(now, CLOCK_TOLERANCE)
    latest_ms = in_milliseconds(now, CLOCK_TOLERANCE)
    # A heartbeat that is down is checked again after at least a minute.
    is_too_far = and_(
        Heartbeat.every.is_not(None),
        Heartbeat.due_ms > latest_ms + WAIT_MS,
        Heartbeat.due_ms > in_milliseconds(now, CLOCK_TOLERANCE + _MINUTE),
    )
    is_of_wrong_clock = or_(Heartbeat.counted_from > latest, Heartbeat.started_ms > latest_ms)
    return and_(Heartbeat.due_ms.is_not(None), or_(is_of_wrong_clock, is_too_far))


def _counted_from_now(now: datetime) -> Mapping[str, Any]:
    moment = literal(milliseconds(now), BigInteger())
    return {
        "due_ms": moment,
        "counted_from": case((Heartbeat.counted_from > now, now), else_=Heartbeat.counted_from),
        "started_ms": case((Heartbeat.started_ms > moment, moment), else_=Heartbeat.started_ms),
    }


#: Condition that a contact waits for a message that is delayed by a rule of its owner.
_WAITS_BY_RULE = exists().where(
    PageMessage.contact_id == Contact.id,
    PageMessage.ended_at.is_(None),
    PageMessage.due_at == Contact.next_try_at,
)


def _sign_in_is_wrong(now: Moment) -> ColumnElement[bool]:
    # The first attempt is due when the sign-in ends.
    latest, latest_retry = (
        later(now, CLOCK_TOLERANCE + each) for each in (_NONE, backchannel_logout.LONGEST_PAUSE)
    )
    return and_(
        BackchannelSession.sign_in_id.is_(None),
        BackchannelSession.due_at > latest,
        or_(BackchannelSession.tries == 0, BackchannelSession.due_at > latest_retry),
    )


#: Corrected columns. Escalations are not included, because they store the time of their last
#: decision (`domain/paging/escalations/`).
GATES = (
    Gate(
        name="heartbeats.due_ms",
        table=Heartbeat,
        is_wrong=_heartbeat_is_wrong,
        values=_counted_from_now,
    ),
    _gate(PageRecipient.last_page_at, _NONE),
    _gate(PageRecipient.last_message_at, _NONE),
    _gate(
        PageMessage.due_at, LONGEST_DELAY, PageMessage.created_at, PageMessage.ended_at.is_(None)
    ),
    _gate(Contact.next_try_at, CONTACT_PAUSE, Contact.last_failed_at, ~_WAITS_BY_RULE),
    _gate(Contact.claimed_until, CONTACT_CLAIM),
    _gate(Mail.send_at, mail.LONGEST_PAUSE, Mail.created_at),
    _gate(AlertChange.next_try_at, change_feed.LONGEST_PAUSE, AlertChange.created_at),
    _gate(WebhookIncidentChange.next_try_at, _MINUTE, WebhookIncidentChange.created_at),
    _gate(
        WebhookDelivery.next_try_at,
        LONGEST_PAUSE,
        WebhookDelivery.queued_at,
        WebhookDelivery.state == "waiting",
    ),
    _gate(WebhookEndpoint.next_try_at, LONGEST_PAUSE, WebhookEndpoint.last_failed_at),
    _gate(WebhookEndpoint.claimed_until, CLAIM_LIFETIME),
    _gate(AuditStream.next_try_at, LONGEST_PAUSE, AuditStream.last_failed_at),
    _gate(AuditStream.claimed_until, CLAIM_LIFETIME),
    _gate(RegistryRemoval.due_at, removal.LONGEST_PAUSE, RegistryRemoval.requested_at),
    _gate(IdempotentRequest.claimed_at, _NONE),
    Gate(
        name="backchannel_sessions.due_at",
        table=BackchannelSession,
        is_wrong=_sign_in_is_wrong,
        values=lambda now: {"due_at": now},
    ),
)
_PAGES = "pages.due_at"


def times_ahead(*, session: Session, now: datetime) -> Mapping[str, int]:
    """Return the number of wrong times by table, leaving out tables without any."""
    counts = session.execute(COUNT_TIMES_AHEAD, moments(now)).mappings().one()
    return {name: count for name, count in counts.items() if count}


def bring_back(*, session: Session, now: datetime) -> Mapping[str, int]:
    """Make items due that wait for wrong times; return their number by table."""
    found = times_ahead(session=session, now=now)
    for gate in GATES:
        if gate.name in found:
            session.execute(
                update_rows(gate.table).where(gate.is_wrong(now)).values(gate.values(now))
            )
    if _PAGES in found:
        _bring_back_pages(session=session, now=now)
    return found


def note_wrong_clock(*, session: Session, now: datetime) -> None:
    """Record for operators that a clock was wrong until now."""
    record_turn(CLOCK_CORRECTION, session=session, now=now)


def _held_recipients(now: Moment) -> Select[int]:
    """Select the recipients whose pages wait for a wrong time."""
    latest, much_later = (later(now, CLOCK_TOLERANCE + each) for each in (_NONE, _MINUTE))
    waiting = (
        Page.recipient_id == PageRecipient.id,
        Page.batch_id.is_(None),
        Page.withdrawn_at.is_(None),
    )
    # Quiet hours may last up to a day, but a recipient with overdue pages is checked within a
    # minute.
    is_overdue = exists().where(*waiting, Page.due_at <= now)
    is_of_wrong_clock = exists().where(*waiting, Page.created_at > latest)
    is_held_too_long = exists().where(*waiting, _is_held_too_long(now))
    return select(PageRecipient.id).where(
        PageRecipient.due_at > latest,
        or_(
            is_of_wrong_clock,
            is_held_too_long,
            and_(PageRecipient.due_at > much_later, is_overdue),
        ),
    )


def _is_held_too_long(now: Moment) -> ColumnElement[bool]:
    """Return the condition that the next check of a withheld page is later than allowed."""
    is_archived = Page.held_by == ARCHIVED
    of_mute, of_archived = (
        Page.due_at > later(now, CLOCK_TOLERANCE + most) for most in (_MINUTE, LATEST_LOOK)
    )
    return and_(Page.held_by.is_not(None), of_mute, or_(~is_archived, of_archived))


def _count_of(statement: Select[int]) -> ColumnElement[int]:
    return select(func.count()).select_from(statement.subquery()).scalar_subquery()


#: Query for the numbers of wrong times by table, with the parameters of
#: `domain.core.schedule_conditions`.
COUNT_TIMES_AHEAD = select(
    *(
        _count_of(select(literal(1)).select_from(gate.table).where(gate.is_wrong(NOW))).label(
            gate.name
        )
        for gate in GATES
    ),
    _count_of(_held_recipients(NOW)).label(_PAGES),
)


def _bring_back_pages(*, session: Session, now: datetime) -> None:
    """Release pages that were queued in the future, unless quiet hours hold them back.

    Pages that are withheld by a mute or an archived project are checked again.
    """
    ids = session.scalars(_held_recipients(now)).all()
    # Lock recipients before pages, in the same order as batching.
    recipients = session.scalars(
        select(PageRecipient)
        .where(PageRecipient.id.in_(ids))
        .order_by(PageRecipient.id)
        .with_for_update()
    ).all()
    for recipient in recipients:
        session.execute(
            update_rows(Page)
            .where(
                Page.recipient_id == recipient.id,
                Page.batch_id.is_(None),
                Page.withdrawn_at.is_(None),
                _is_held_too_long(now),
            )
            .values(due_at=now)
        )
        quiet = quiet_hours_of(recipient)
        for is_critical in (False, True):
            due_at = held_until(quiet, is_critical=is_critical, now=now) or now + GATHERING_PAUSE
            session.execute(
                update_rows(Page)
                .where(
                    Page.recipient_id == recipient.id,
                    Page.batch_id.is_(None),
                    Page.withdrawn_at.is_(None),
                    Page.is_critical.is_(is_critical),
                    Page.created_at > now,
                )
                .values(due_at=due_at, created_at=now)
            )
        first = session.scalar(
            select(func.min(Page.due_at)).where(
                Page.recipient_id == recipient.id,
                Page.batch_id.is_(None),
                Page.withdrawn_at.is_(None),
            )
        )
        if first is not None:
            wake_recipients({recipient.id: first}, session=session)


def ahead_remark(*, session: Session, now: datetime) -> str | None:
    """Return a sentence for operators if stored times are wrong, or None."""
    found = times_ahead(session=session, now=now)
    if not found:
        return None
    where = ", ".join(sorted(found))
    return (
        f"{sum(found.values())} stored times lie ahead of the clock ({where}): it is, or was, "
        "wrong. The background worker brings them back."
    )


def correction_remark(*, session: Session, now: datetime) -> str | None:
    """Return a sentence for operators if a clock was wrong recently, or None."""
    at = last_turn(CLOCK_CORRECTION, session=session)
    if at is None or not now - _TOLD_FOR < at <= now + CLOCK_TOLERANCE:
        return None
    return (
        f"A clock was set back, or ran ahead, until {date_and_time(at)}: what waited for such "
        "times was made due then."
    )
