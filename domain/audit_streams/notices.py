"""Tells administrators by e-mail of destinations of the audit log that fail or lost events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE, HUMAN
from domain.audit_streams.streams import AUDIT_STREAMS
from domain.audit_streams.types import AuditStream
from domain.clock import date_and_time
from domain.mail.outbox import NewMessage, queue_messages
from domain.outgoing.states import FAILING_AFTER, DestinationState
from models import User


@dataclass(frozen=True, kw_only=True)
class StreamNoticeSettings:
    """The settings that the messages name."""

    instance_name: str
    base_url: str
    keep_days: int


def queue_stream_notices(sign: StreamNoticeSettings, *, session: Session, now: datetime) -> int:
    """Store the messages that are due and not stored yet, and return their number.

    One when a destination has failed for a day, and one for each day on which events were given up.
    """
    notices = [
        each
        for stream in AUDIT_STREAMS.list_all(session=session, now=now)
        for each in _notices(stream, sign, now)
    ]
    administrators = session.scalars(
        select(User).where(User.is_admin, User.state == ACTIVE, User.kind == HUMAN)
    ).all()
    messages = [_message(notice, to, sign) for notice in notices for to in administrators]
    return queue_messages(messages, session=session, now=now)


@dataclass(frozen=True, kw_only=True)
class _Notice:
    key: str
    subject: str
    lines: Sequence[str]
    stream: AuditStream


def _notices(stream: AuditStream, sign: StreamNoticeSettings, now: datetime) -> Iterator[_Notice]:
    if stream.state is DestinationState.FAILING and stream.failing_since is not None:
        since = date_and_time(stream.failing_since)
        yield _Notice(
            key=f"audit stream {stream.id} failing since {stream.failing_since.isoformat()}",
            subject="Audit events cannot be delivered",
            lines=(
                f"No audit event could be delivered to {stream.shown_url}",
                f"since {since}. Last error: {stream.last_error}.",
                f"{stream.backlog} events are waiting. They are sent when the destination accepts",
                f"them again, and given up {sign.keep_days} days after they happened.",
            ),
            stream=stream,
        )
    dropped_at = stream.last_dropped_at
    if dropped_at is not None and now - dropped_at < FAILING_AFTER:
        yield _Notice(
            key=f"audit stream {stream.id} dropped on {dropped_at.date().isoformat()}",
            subject="Audit events were given up",
            lines=(
                f"Events for {stream.shown_url} waited too long and will not be sent:",
                f"{stream.dropped} so far. Stored events remain in the audit log.",
            ),
            stream=stream,
        )


def _message(notice: _Notice, to: User, sign: StreamNoticeSettings) -> NewMessage:
    lines = "\n".join(notice.lines)
    return NewMessage(
        key=f"{notice.key}, to {to.id}",
        recipient=to.email,
        subject=notice.subject,
        text=(
            f"Hello {to.name},\n\n{lines}\n\n"
            f"See {sign.base_url}/admin/audit_streams/{notice.stream.id}\n\n"
            f"-- \n{sign.instance_name}, {sign.base_url}\n"
            "You receive this message because you are an administrator.\n"
        ),
    )
