"""Corrects future times that were stored by hosts with a fast clock.

A time is wrong if it is further in the future than allowed, or if its row was written in the
future. Such times are stored by hosts with a wrong clock, or before a clock is set back. Items that
wait for a wrong time become due immediately, so no other code has to check stored times.

Times of alerts are not corrected, because no index would find wrong times. Code that depends on the
times of alerts checks them itself (`domain/paging/silences/flapping.py`). Times that are only
displayed are not corrected.
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

from domain.alerts.change_feed import CHANGE_QUEUE
from domain.core.clock import CLOCK_TOLERANCE, format_message_time
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.due_time_sql import (
    NOW,
    Moment,
    build_milliseconds_from_now,
    build_time_from_now,
    compute_time_parameters,
)
from domain.core.hosts import CLOCK_CORRECTION_RECORD, find_last_job_run, record_job_run
from domain.delivery.mail.outbox import MAIL_QUEUE
from domain.delivery.outgoing.attempts import DESTINATION_BACKOFF, DESTINATION_CLAIM_LIFETIME
from domain.heartbeats.pings import OVERDUE_AFTER_MS
from domain.heartbeats.states import convert_to_unix_ms
from domain.oauth.openid.backchannel_logout import LOGOUT_QUEUE
from domain.paging.notifications.message_queue import CONTACT_QUEUE
from domain.paging.notifications.recipients import (
    BATCHING_PAUSE,
    find_hold_end,
    get_quiet_hours,
    schedule_recipient_batching,
)
from domain.paging.notifications.rules import MAX_RULE_DELAY
from domain.paging.notifications.send_checks import ARCHIVED_REASON, MAX_ARCHIVED_CHECK_INTERVAL
from domain.registry.removal import REMOVAL_QUEUE
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

#: Time for which a notice of a correction is shown to operators.
_NOTICE_DURATION = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_NO_DELAY = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class CorrectedColumn:
    """A column of due times, with the condition for wrong times and their correction."""

    name: str
    table: type[Any]
    is_wrong: Callable[[Moment], ColumnElement[bool]]
    #: Function that returns the new values for columns.
    values: Callable[[datetime], Mapping[str, Any]]


def _build_corrected_column(
    column: InstrumentedAttribute[Any],
    maximum: timedelta,
    written: InstrumentedAttribute[Any] | None = None,
    among: ColumnElement[bool] | None = None,
) -> CorrectedColumn:
    """Return a corrected column in which times are valid up to `maximum` in the future.

    `written` is the column with the time at which the row was written. If that time is in the
    future, any future time in `column` is wrong.
    """

    def is_wrong(now: Moment) -> ColumnElement[bool]:
        latest = build_time_from_now(now, CLOCK_TOLERANCE)
        is_of_wrong_clock = false() if written is None else written > latest
        # The first condition makes the database use the index on the column.
        found = (
            column > latest,
            or_(column > build_time_from_now(now, CLOCK_TOLERANCE + maximum), is_of_wrong_clock),
        )
        return and_(*found, *(() if among is None else (among,)))

    def values(now: datetime) -> Mapping[str, Any]:
        if written is None:
            return {column.key: now}
        return {column.key: now, written.key: case((written > now, now), else_=written)}

    table: Any = column.class_
    name = f"{table.__tablename__}.{column.key}"
    return CorrectedColumn(name=name, table=table, is_wrong=is_wrong, values=values)


def _is_heartbeat_time_wrong(now: Moment) -> ColumnElement[bool]:
    latest = build_time_from_now(now, CLOCK_TOLERANCE)
    latest_ms = build_milliseconds_from_now(now, CLOCK_TOLERANCE)
    # A heartbeat that is down may be due a minute later, even if its interval is shorter.
    is_too_far = and_(
        Heartbeat.every.is_not(None),
        Heartbeat.due_ms > latest_ms + OVERDUE_AFTER_MS,
        Heartbeat.due_ms > build_milliseconds_from_now(now, CLOCK_TOLERANCE + _MINUTE),
    )
    is_of_wrong_clock = or_(Heartbeat.counted_from > latest, Heartbeat.started_ms > latest_ms)
    return and_(Heartbeat.due_ms.is_not(None), or_(is_of_wrong_clock, is_too_far))


def _build_corrected_heartbeat_values(now: datetime) -> Mapping[str, Any]:
    moment = literal(convert_to_unix_ms(now), BigInteger())
    return {
        "due_ms": moment,
        "counted_from": case((Heartbeat.counted_from > now, now), else_=Heartbeat.counted_from),
        "started_ms": case((Heartbeat.started_ms > moment, moment), else_=Heartbeat.started_ms),
    }


#: Condition for contacts with a message that one of their owner's rules delays.
_IS_DELAYED_BY_RULE = exists().where(
    PageMessage.contact_id == Contact.id,
    PageMessage.ended_at.is_(None),
    PageMessage.due_at == Contact.next_try_at,
)


def _is_logout_notice_time_wrong(now: Moment) -> ColumnElement[bool]:
    # The first attempt is due when the sign-in ends.
    latest, latest_retry = (
        build_time_from_now(now, CLOCK_TOLERANCE + each)
        for each in (_NO_DELAY, LOGOUT_QUEUE.backoff.longest)
    )
    return and_(
        BackchannelSession.sign_in_id.is_(None),
        BackchannelSession.due_at > latest,
        or_(BackchannelSession.tries == 0, BackchannelSession.due_at > latest_retry),
    )


#: Columns with corrected times. Escalations are not included, because they store the time of their
#: last decision (`domain/paging/escalations/`).
CORRECTED_COLUMNS = (
    CorrectedColumn(
        name="heartbeats.due_ms",
        table=Heartbeat,
        is_wrong=_is_heartbeat_time_wrong,
        values=_build_corrected_heartbeat_values,
    ),
    _build_corrected_column(PageRecipient.last_page_at, _NO_DELAY),
    _build_corrected_column(PageRecipient.last_message_at, _NO_DELAY),
    _build_corrected_column(
        PageMessage.due_at, MAX_RULE_DELAY, PageMessage.created_at, PageMessage.ended_at.is_(None)
    ),
    _build_corrected_column(
        Contact.next_try_at,
        CONTACT_QUEUE.backoff.longest_varied,
        Contact.last_failed_at,
        ~_IS_DELAYED_BY_RULE,
    ),
    _build_corrected_column(Contact.claimed_until, CONTACT_QUEUE.claim_lifetime),
    _build_corrected_column(Mail.send_at, MAIL_QUEUE.backoff.longest, Mail.created_at),
    _build_corrected_column(
        AlertChange.next_try_at, CHANGE_QUEUE.backoff.longest, AlertChange.created_at
    ),
    _build_corrected_column(
        WebhookIncidentChange.next_try_at, _MINUTE, WebhookIncidentChange.created_at
    ),
    _build_corrected_column(
        WebhookDelivery.next_try_at,
        DESTINATION_BACKOFF.longest,
        WebhookDelivery.queued_at,
        WebhookDelivery.state == "waiting",
    ),
    _build_corrected_column(
        WebhookEndpoint.next_try_at, DESTINATION_BACKOFF.longest, WebhookEndpoint.last_failed_at
    ),
    _build_corrected_column(WebhookEndpoint.claimed_until, DESTINATION_CLAIM_LIFETIME),
    _build_corrected_column(
        AuditStream.next_try_at, DESTINATION_BACKOFF.longest, AuditStream.last_failed_at
    ),
    _build_corrected_column(AuditStream.claimed_until, DESTINATION_CLAIM_LIFETIME),
    _build_corrected_column(
        RegistryRemoval.due_at, REMOVAL_QUEUE.backoff.longest, RegistryRemoval.requested_at
    ),
    _build_corrected_column(IdempotentRequest.claimed_at, _NO_DELAY),
    CorrectedColumn(
        name="backchannel_sessions.due_at",
        table=BackchannelSession,
        is_wrong=_is_logout_notice_time_wrong,
        values=lambda now: {"due_at": now},
    ),
)
_PAGES_COLUMN = "pages.due_at"


def count_future_times(*, session: Session, now: datetime) -> Mapping[str, int]:
    """Return the number of wrong times by table, leaving out tables without wrong times."""
    counts = session.execute(FUTURE_TIMES_QUERY, compute_time_parameters(now)).mappings().one()
    return {name: count for name, count in counts.items() if count}


def correct_future_times(*, session: Session, now: datetime) -> Mapping[str, int]:
    """Make items due immediately if their stored due times are wrong.

    Return the number of items by table.
    """
    found = count_future_times(session=session, now=now)
    for gate in CORRECTED_COLUMNS:
        if gate.name in found:
            session.execute(
                build_bulk_update(gate.table).where(gate.is_wrong(now)).values(gate.values(now))
            )
    if _PAGES_COLUMN in found:
        _correct_page_times(session=session, now=now)
    return found


def record_wrong_clock(*, session: Session, now: datetime) -> None:
    """Record that a clock was wrong until now, so that operators are informed."""
    record_job_run(CLOCK_CORRECTION_RECORD, session=session, now=now)


def _list_waiting_page_conditions(
    recipient_id: int | InstrumentedAttribute[int],
) -> tuple[ColumnElement[bool], ...]:
    """Return SQL conditions that select a recipient's pages that are not in a batch yet."""
    return Page.recipient_id == recipient_id, Page.batch_id.is_(None), Page.withdrawn_at.is_(None)


def _select_recipients_with_wrong_times(now: Moment) -> Select[int]:
    """Return a query for recipients with waiting pages and a wrong due time."""
    latest, much_later = (
        build_time_from_now(now, CLOCK_TOLERANCE + each) for each in (_NO_DELAY, _MINUTE)
    )
    waiting = _list_waiting_page_conditions(PageRecipient.id)
    # Quiet hours may last up to a day, but a recipient with overdue pages is checked within a
    # minute.
    is_overdue = exists().where(*waiting, Page.due_at <= now)
    is_of_wrong_clock = exists().where(*waiting, Page.created_at > latest)
    is_held_too_long = exists().where(*waiting, _is_withheld_too_long(now))
    return select(PageRecipient.id).where(
        PageRecipient.due_at > latest,
        or_(
            is_of_wrong_clock,
            is_held_too_long,
            and_(PageRecipient.due_at > much_later, is_overdue),
        ),
    )


def _is_withheld_too_long(now: Moment) -> ColumnElement[bool]:
    """Return an SQL condition that is true for withheld pages whose next check is too late."""
    is_archived = Page.held_by == ARCHIVED_REASON
    of_mute, of_archived = (
        Page.due_at > build_time_from_now(now, CLOCK_TOLERANCE + most)
        for most in (_MINUTE, MAX_ARCHIVED_CHECK_INTERVAL)
    )
    return and_(Page.held_by.is_not(None), of_mute, or_(~is_archived, of_archived))


def _count_rows(statement: Select[int]) -> ColumnElement[int]:
    return select(func.count()).select_from(statement.subquery()).scalar_subquery()


#: Query for the numbers of wrong times by table, with the parameters of
#: `domain.core.due_time_sql`.
FUTURE_TIMES_QUERY = select(
    *(
        _count_rows(select(literal(1)).select_from(gate.table).where(gate.is_wrong(NOW))).label(
            gate.name
        )
        for gate in CORRECTED_COLUMNS
    ),
    _count_rows(_select_recipients_with_wrong_times(NOW)).label(_PAGES_COLUMN),
)


def _correct_page_times(*, session: Session, now: datetime) -> None:
    """Release pages with queue times in the future, unless quiet hours delay them.

    Pages that are withheld by a mute or an archived project are checked again.
    """
    ids = session.scalars(_select_recipients_with_wrong_times(now)).all()
    # Lock recipients before pages, as batching does, to prevent deadlocks.
    recipients = session.scalars(
        select(PageRecipient)
        .where(PageRecipient.id.in_(ids))
        .order_by(PageRecipient.id)
        .with_for_update()
    ).all()
    for recipient in recipients:
        waiting = _list_waiting_page_conditions(recipient.id)
        held = build_bulk_update(Page).where(*waiting, _is_withheld_too_long(now))
        session.execute(held.values(due_at=now))
        quiet = get_quiet_hours(recipient)
        for is_critical in (False, True):
            due_at = find_hold_end(quiet, is_critical=is_critical, now=now) or now + BATCHING_PAUSE
            session.execute(
                build_bulk_update(Page)
                .where(*waiting, Page.is_critical.is_(is_critical), Page.created_at > now)
                .values(due_at=due_at, created_at=now)
            )
        first = session.scalar(select(func.min(Page.due_at)).where(*waiting))
        if first is not None:
            schedule_recipient_batching({recipient.id: first}, session=session)


def describe_future_times(*, session: Session, now: datetime) -> str | None:
    """Return a sentence for operators if stored times are wrong, or None."""
    found = count_future_times(session=session, now=now)
    if not found:
        return None
    where, count = ", ".join(sorted(found)), sum(found.values())
    times = "stored time is" if count == 1 else "stored times are"
    return (
        f"{count} {times} ahead of the clock ({where}), because the clock is or was wrong. The "
        "background worker corrects this."
    )


def describe_recent_correction(*, session: Session, now: datetime) -> str | None:
    """Return a sentence for operators if a clock was wrong recently, or None."""
    at = find_last_job_run(CLOCK_CORRECTION_RECORD, session=session)
    if at is None or not now - _NOTICE_DURATION < at <= now + CLOCK_TOLERANCE:
        return None
    return (
        f"A clock was set back or ran ahead until {format_message_time(at)}. Everything that "
        "waited for "
        "a wrong time became due then."
    )
