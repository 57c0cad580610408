"""What administrators do with destinations of the audit log, each with its audit event."""

from datetime import datetime

from domain.audit.events import Actor, Event, EventKind
from domain.audit.streaming import destinations
from domain.audit.streaming.destinations import NewSecret, StreamView
from domain.audit.streaming.messages import message_of_test
from domain.clock import written
from domain.database.locks import release_locks
from domain.outgoing.claims import Attempt
from domain.outgoing.signing_secrets import USUAL_OVERLAP
from domain.outgoing_urls import parse_outgoing_url
from web.extensions import db
from web.http.audit_events import record_event
from web.outgoing.attempts import attempt
from web.outgoing.client import OutgoingClient
from web.services import now, services, settings


def get(stream_id: int) -> StreamView:
    """Return a destination, or raise NotFoundError."""
    return destinations.get_stream(stream_id, session=db.session(), now=now())


def create(url: str) -> NewSecret:
    """Create a destination, which gets all events from now on."""
    _record(EventKind.AUDIT_STREAM_CREATED, url)
    db.session.flush()  # Before the destination, which would get this event as its first.
    return destinations.create_stream(
        url, session=db.session(), keyring=services().keyring, now=now()
    )


def change_url(stream_id: int, url: str) -> StreamView:
    """Send events elsewhere from now on, those that wait as well."""
    before = get(stream_id)
    if before.url == url:
        return before
    _record(EventKind.AUDIT_STREAM_CHANGED, url, before=before.shown_url)
    return destinations.change_url(stream_id, url, session=db.session(), now=now())


def pause(stream_id: int) -> StreamView:
    """Stop sending to a destination."""
    before = get(stream_id)
    if before.paused_at is None:
        _record(EventKind.AUDIT_STREAM_CHANGED, before.url, change="paused")
    return destinations.pause_stream(stream_id, session=db.session(), now=now())


def resume(stream_id: int) -> StreamView:
    """Send what waits for a destination, at once."""
    before = get(stream_id)
    if before.paused_at is not None:
        _record(EventKind.AUDIT_STREAM_CHANGED, before.url, change="resumed")
    return destinations.resume_stream(stream_id, session=db.session(), now=now())


def rotate(stream_id: int, *, previous_until: datetime | None = None) -> NewSecret:
    """Create a new secret; the old one signs beside it until a moment, usually for a day."""
    until = previous_until or now() + USUAL_OVERLAP
    _record(
        EventKind.AUDIT_STREAM_SECRET_ROTATED,
        get(stream_id).url,
        old_secret_ends=written(max(until, now())),
    )
    return destinations.rotate_secret(
        stream_id,
        previous_until=until,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )


def remove(stream_id: int) -> StreamView:
    """Remove a destination, and return what it was; what waits for it is never sent."""
    before = get(stream_id)
    _record(EventKind.AUDIT_STREAM_REMOVED, before.url, undelivered=before.backlog)
    destinations.remove_stream(stream_id, session=db.session())
    return before


def send_test(stream_id: int, actor: Actor | None) -> Attempt:
    """Send an event of its own at once, before those that wait, and return what came of it."""
    url, moment, session = get(stream_id).url, now(), db.session()
    secrets = destinations.secrets_in_force(
        stream_id, session=session, keyring=services().keyring, now=moment
    )
    release_locks(session)  # The other side may take its time.
    client = OutgoingClient.of(settings())
    try:
        return attempt(client, url, message_of_test(actor, now=moment), secrets, now=moment)
    finally:
        client.close()


def _record(kind: EventKind, url: str, **details: object) -> None:
    record_event(Event(kind=kind, subject=parse_outgoing_url(url).shown, details=details))
