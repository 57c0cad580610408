"""Destinations of the audit log: created, changed, paused and removed by administrators."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Row, Select, delete, func, select
from sqlalchemy.orm import Session

from domain.audit.streaming.deliveries import take_back_all
from domain.errors import ConflictError, NotFoundError
from domain.keyring import Keyring
from domain.outgoing.signing import new_secret
from domain.outgoing.signing_secrets import previous_ends_at, replace_secret, secrets_of
from domain.outgoing.states import DestinationState, state_of
from domain.outgoing_urls import parse_outgoing_url
from models import AuditStream, AuditStreamEntry

#: Each one costs a row for every event.
MOST_STREAMS = 20


@dataclass(frozen=True, kw_only=True)
class StreamView:
    """A destination and the state of its delivery."""

    id: int
    url: str
    state: DestinationState
    created_at: datetime
    paused_at: datetime | None
    #: None unless a former secret still signs.
    previous_secret_expires_at: datetime | None
    #: Events that wait, and when the oldest of them happened.
    backlog: int
    oldest_event_at: datetime | None
    #: Events that the receiver refused so often that later ones went before them.
    set_aside: int
    last_delivered_at: datetime | None
    #: Failures since the last success.
    failures: int
    failing_since: datetime | None
    last_failed_at: datetime | None
    last_error: str | None
    next_try_at: datetime | None
    #: Events that waited too long and were given up.
    dropped: int
    last_dropped_at: datetime | None

    @property
    def shown_url(self) -> str:
        """The URL without its query, which may hold a secret."""
        return parse_outgoing_url(self.url).shown

    @property
    def is_encrypted(self) -> bool:
        """Whether events are sent over TLS."""
        return parse_outgoing_url(self.url).is_encrypted


@dataclass(frozen=True, kw_only=True)
class NewSecret:
    """A destination with its new secret, which is shown once."""

    stream: StreamView
    secret: str = field(repr=False)


def create_stream(url: str, *, session: Session, keyring: Keyring, now: datetime) -> NewSecret:
    """Create a destination, which gets all events from now on."""
    parse_outgoing_url(url)
    if (session.scalar(select(func.count(AuditStream.id))) or 0) >= MOST_STREAMS:
        raise ConflictError(f"There are {MOST_STREAMS} destinations already. Delete one first.")
    secret = new_secret()
    row = AuditStream(url=url, secret_ciphertext=keyring.encrypt(secret), created_at=now)
    session.add(row)
    session.flush()
    return NewSecret(stream=get_stream(row.id, session=session, now=now), secret=secret)


def list_streams(*, session: Session, now: datetime) -> Sequence[StreamView]:
    """Return all destinations, the oldest first."""
    rows = session.execute(_statement().order_by(AuditStream.id))
    return [_view(row, now) for row in rows]


def get_stream(stream_id: int, *, session: Session, now: datetime) -> StreamView:
    """Return a destination, or raise NotFoundError."""
    row = session.execute(_statement().where(AuditStream.id == stream_id)).first()
    if row is None:
        raise NotFoundError("Destination not found.")
    return _view(row, now)


def _statement() -> Select[AuditStream, int, datetime | None, int]:
    of_it = AuditStreamEntry.stream_id == AuditStream.id
    is_aside = AuditStreamEntry.set_aside_at.is_not(None)
    mine = of_it & ~is_aside
    waiting = select(func.count()).where(mine).scalar_subquery()
    aside = select(func.count()).where(of_it, is_aside).scalar_subquery()
    oldest = (
        select(AuditStreamEntry.created_at)
        .where(mine)
        .order_by(AuditStreamEntry.id)
        .limit(1)
        .scalar_subquery()
    )
    return select(AuditStream, waiting, oldest, aside)


def _view(row: Row[AuditStream, int, datetime | None, int], now: datetime) -> StreamView:
    stream, waiting, oldest, aside = row
    return StreamView(
        id=stream.id,
        url=stream.url,
        state=state_of(stream, now=now),
        created_at=stream.created_at,
        paused_at=stream.paused_at,
        previous_secret_expires_at=previous_ends_at(stream, now=now),
        backlog=waiting,
        oldest_event_at=oldest,
        set_aside=aside,
        last_delivered_at=stream.last_delivered_at,
        failures=stream.tries,
        failing_since=stream.failing_since,
        last_failed_at=stream.last_failed_at,
        last_error=stream.last_error,
        next_try_at=stream.next_try_at,
        dropped=stream.dropped,
        last_dropped_at=stream.last_dropped_at,
    )


def _row(stream_id: int, session: Session) -> AuditStream:
    row = session.get(AuditStream, stream_id, with_for_update=True)
    if row is None:
        raise NotFoundError("Destination not found.")
    return row


def change_url(stream_id: int, url: str, *, session: Session, now: datetime) -> StreamView:
    """Send events elsewhere from now on, those that wait as well."""
    parse_outgoing_url(url)
    row = _row(stream_id, session)
    row.url, row.next_try_at = url, None
    session.flush()
    take_back_all(stream_id, session=session)
    return get_stream(stream_id, session=session, now=now)


def pause_stream(stream_id: int, *, session: Session, now: datetime) -> StreamView:
    """Stop sending; events wait for as long as their retention allows."""
    row = _row(stream_id, session)
    row.paused_at = row.paused_at or now
    session.flush()
    return get_stream(stream_id, session=session, now=now)


def resume_stream(stream_id: int, *, session: Session, now: datetime) -> StreamView:
    """Send what waits, at once, and what was set aside."""
    row = _row(stream_id, session)
    row.paused_at = row.next_try_at = None
    session.flush()
    take_back_all(stream_id, session=session)
    return get_stream(stream_id, session=session, now=now)


def rotate_secret(
    stream_id: int,
    *,
    previous_until: datetime,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> NewSecret:
    """Create a new secret; the old one signs beside it until a moment, which may be now.

    A secret that was older still ends at once: there are never more than two.
    """
    row = _row(stream_id, session)
    secret = replace_secret(row, previous_until=previous_until, keyring=keyring, now=now)
    session.flush()
    return NewSecret(stream=get_stream(stream_id, session=session, now=now), secret=secret)


def secrets_in_force(
    stream_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> list[str]:
    """Return the secrets that sign, the newest first."""
    row = session.get(AuditStream, stream_id)
    return secrets_of(row, keyring=keyring, now=now) if row else []


def remove_stream(stream_id: int, *, session: Session) -> None:
    """Remove a destination; events that wait for it are never sent (`remove_orphans`)."""
    gone = session.scalar(
        delete(AuditStream).where(AuditStream.id == stream_id).returning(AuditStream.id)
    )
    if gone is None:
        raise NotFoundError("Destination not found.")
