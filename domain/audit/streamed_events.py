"""Queues events that are sent to the streams of the audit log, but not stored."""

from datetime import datetime

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventSource, assign_event_namespace, build_event_row
from domain.audit.log import build_event_view
from domain.delivery.outgoing.signing import generate_message_id
from models import AuditStream, AuditStreamEntry, User


def queue_streamed_event(
    event: Event, source: EventSource, *, session: Session, now: datetime
) -> None:
    """Queue an event for every stream, to be sent only if the transaction commits.

    If there are no streams, the function reads one table and writes nothing.
    """
    streams = session.scalars(select(AuditStream.id).order_by(AuditStream.id)).all()
    if not streams:
        return
    row = build_event_row(event, source, now=now)
    if event.place is not None:
        assign_event_namespace(row, event, session=session)
    username = session.scalar(select(User.username).where(User.id == event.user_id))
    message_id = generate_message_id()
    shown = {**build_event_view(row, username).convert_to_json_value(), "id": message_id}
    session.execute(
        insert(AuditStreamEntry),
        [
            {
                "stream_id": stream_id,
                "payload": shown,
                "actor_id": row.actor_id,
                "message_id": message_id,
                "created_at": now,
            }
            for stream_id in streams
        ],
    )
