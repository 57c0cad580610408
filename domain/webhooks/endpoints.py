"""Endpoints of projects: created, changed, paused and removed by maintainers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, delete, func, select
from sqlalchemy.orm import Session

from domain.alerts.following.followers import Follower, follow, unfollow
from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.errors import ConflictError, NotFoundError
from domain.keyring import Keyring
from domain.outgoing.signing import new_secret
from domain.outgoing.signing_secrets import previous_ends_at, replace_secret, secrets_of
from domain.outgoing.states import DestinationState, state_of
from domain.outgoing_urls import parse_outgoing_url
from domain.webhooks.delivery_states import DeliveryState
from domain.webhooks.events import read_events, takes_alerts
from models import Project, WebhookDelivery, WebhookEndpoint

#: Of a project; each one costs a row for every event.
MOST_ENDPOINTS = 20


class PauseReason(StrEnum):
    """Why an endpoint is paused; the value is stored and shown."""

    #: A maintainer paused it.
    USER = "user"
    #: It took nothing for days.
    FAILURES = "failures"
    #: It answered 410 Gone.
    GONE = "gone"


@dataclass(frozen=True, kw_only=True)
class EndpointDetails:
    """What a maintainer decides about an endpoint."""

    url: str = field(repr=False)
    events: tuple[str, ...]
    conditions: Conditions = field(default_factory=Conditions)


@dataclass(frozen=True, kw_only=True)
class EndpointView:
    """An endpoint and the state of its delivery."""

    id: int
    project_id: int
    url: str
    events: tuple[str, ...]
    conditions: Conditions
    state: DestinationState
    created_at: datetime
    paused_at: datetime | None
    pause_reason: PauseReason | None
    #: None unless a former secret still signs.
    previous_secret_expires_at: datetime | None
    #: Deliveries that wait, and when the oldest of them was queued.
    backlog: int
    oldest_event_at: datetime | None
    last_delivered_at: datetime | None
    #: Failures since the last success.
    failures: int
    failing_since: datetime | None
    last_failed_at: datetime | None
    last_error: str | None
    next_try_at: datetime | None

    @property
    def shown_url(self) -> str:
        """The URL without its query, which may hold a secret."""
        return parse_outgoing_url(self.url).shown

    @property
    def is_encrypted(self) -> bool:
        """Whether messages are sent over TLS."""
        return parse_outgoing_url(self.url).is_encrypted

    @property
    def details(self) -> EndpointDetails:
        """What a maintainer has decided."""
        return EndpointDetails(url=self.url, events=self.events, conditions=self.conditions)


@dataclass(frozen=True, kw_only=True)
class NewSecret:
    """An endpoint with its new secret, which is shown once."""

    endpoint: EndpointView
    secret: str = field(repr=False)


def create_endpoint(
    project_id: int,
    details: EndpointDetails,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> NewSecret:
    """Create an endpoint, which gets the events from now on."""
    parse_outgoing_url(details.url)
    events = read_events(details.events)
    _lock(project_id, session)
    mine = WebhookEndpoint.project_id == project_id
    if (session.scalar(select(func.count()).where(mine)) or 0) >= MOST_ENDPOINTS:
        raise ConflictError(f"A project can have {MOST_ENDPOINTS} webhooks: delete one first.")
    secret = new_secret()
    row = WebhookEndpoint(
        project_id=project_id,
        url=details.url,
        events=list(events),
        conditions=details.conditions.to_json(),
        secret_ciphertext=keyring.encrypt(secret),
        created_at=now,
    )
    session.add(row)
    _follow(project_id, session)
    made = get_endpoint(project_id, row.id, session=session, now=now)
    return NewSecret(endpoint=made, secret=secret)


def _lock(project_id: int, session: Session) -> None:
    """Let one change of a project's endpoints follow the other."""
    project = select(Project.id).where(Project.id == project_id)
    # The weaker lock: alerts that are stored meanwhile refer to the project.
    session.execute(project.with_for_update(key_share=True))


def _follow(project_id: int, session: Session) -> None:
    """Follow the project's alerts if and only if an endpoint gets their events."""
    session.flush()
    chosen = session.scalars(
        select(WebhookEndpoint.events).where(
            WebhookEndpoint.project_id == project_id, WebhookEndpoint.paused_at.is_(None)
        )
    )
    change = follow if any(map(takes_alerts, chosen)) else unfollow
    change(project_id, Follower.WEBHOOKS, session=session)


def list_endpoints(project_id: int, *, session: Session, now: datetime) -> Sequence[EndpointView]:
    """Return the endpoints of a project, the oldest first."""
    mine = _statement(WebhookEndpoint.project_id == project_id)
    return [_view(*row, now=now) for row in session.execute(mine.order_by(WebhookEndpoint.id))]


def troubled_endpoints(*, session: Session, now: datetime) -> Sequence[EndpointView]:
    """Return the endpoints of all projects that fail, or that were paused because of it."""
    troubled = (WebhookEndpoint.failing_since.is_not(None)) | (
        WebhookEndpoint.pause_reason.in_((PauseReason.FAILURES.value, PauseReason.GONE.value))
    )
    rows = session.execute(_statement(troubled).order_by(WebhookEndpoint.id))
    return [_view(*row, now=now) for row in rows]


def get_endpoint(
    project_id: int, endpoint_id: int, *, session: Session, now: datetime
) -> EndpointView:
    """Return an endpoint of a project, or raise NotFoundError."""
    condition = (WebhookEndpoint.id == endpoint_id) & (WebhookEndpoint.project_id == project_id)
    found = session.execute(_statement(condition)).first()
    if found is None:
        raise _not_found()
    return _view(*found, now=now)


def _not_found() -> NotFoundError:
    return NotFoundError("Webhook not found in this project.")


def _statement(condition: ColumnElement[bool]) -> Select[WebhookEndpoint, int, datetime | None]:
    waiting = (
        select(func.count(), func.min(WebhookDelivery.queued_at).label("oldest"))
        .where(
            WebhookDelivery.endpoint_id == WebhookEndpoint.id,
            WebhookDelivery.state == DeliveryState.WAITING.value,
        )
        .correlate(WebhookEndpoint)
    )
    count = waiting.with_only_columns(func.count()).scalar_subquery()
    oldest = waiting.with_only_columns(func.min(WebhookDelivery.queued_at)).scalar_subquery()
    return select(WebhookEndpoint, count, oldest).where(condition)


def _view(
    row: WebhookEndpoint, waiting: int, oldest: datetime | None, *, now: datetime
) -> EndpointView:
    return EndpointView(
        id=row.id,
        project_id=row.project_id,
        url=row.url,
        events=tuple(row.events),
        conditions=conditions_from(row.conditions),
        state=state_of(row, now=now),
        created_at=row.created_at,
        paused_at=row.paused_at,
        pause_reason=PauseReason(row.pause_reason) if row.pause_reason else None,
        previous_secret_expires_at=previous_ends_at(row, now=now),
        backlog=waiting,
        oldest_event_at=oldest,
        last_delivered_at=row.last_delivered_at,
        failures=row.tries,
        failing_since=row.failing_since,
        last_failed_at=row.last_failed_at,
        last_error=row.last_error,
        next_try_at=row.next_try_at,
    )


def _row(project_id: int, endpoint_id: int, session: Session) -> WebhookEndpoint:
    row = session.get(WebhookEndpoint, endpoint_id, with_for_update=True, populate_existing=True)
    if row is None or row.project_id != project_id:
        raise _not_found()
    # After the endpoint, as workers do that pause one.
    _lock(project_id, session)
    return row


def change_endpoint(
    project_id: int, endpoint_id: int, details: EndpointDetails, *, session: Session
) -> None:
    """Change where events are sent, and which; those that wait are sent to the new URL."""
    parse_outgoing_url(details.url)
    row = _row(project_id, endpoint_id, session)
    if row.url != details.url:
        row.url, row.next_try_at = details.url, None
    row.events = list(read_events(details.events))
    row.conditions = details.conditions.to_json()
    _follow(project_id, session)


def pause_endpoint(project_id: int, endpoint_id: int, *, session: Session, now: datetime) -> None:
    """Stop sending, and queue nothing more."""
    pause(_row(project_id, endpoint_id, session), PauseReason.USER, session=session, now=now)


def pause(row: WebhookEndpoint, reason: PauseReason, *, session: Session, now: datetime) -> None:
    """Pause an endpoint whose row the caller has locked."""
    if row.paused_at is None:
        _lock(row.project_id, session)
        row.paused_at, row.pause_reason = now, reason.value
        _follow(row.project_id, session)


def resume_endpoint(project_id: int, endpoint_id: int, *, session: Session) -> None:
    """Send what still waits at once, and queue what happens from now on."""
    row = _row(project_id, endpoint_id, session)
    if row.paused_at is not None:
        # The days without a success begin anew.
        row.failing_since, row.tries = None, 0
    row.paused_at = row.pause_reason = row.next_try_at = None
    _follow(project_id, session)


def rotate_secret(
    project_id: int,
    endpoint_id: int,
    *,
    previous_until: datetime,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> NewSecret:
    """Create a new secret; the old one signs beside it until a moment, which may be now."""
    row = _row(project_id, endpoint_id, session)
    secret = replace_secret(row, previous_until=previous_until, keyring=keyring, now=now)
    session.flush()
    made = get_endpoint(project_id, endpoint_id, session=session, now=now)
    return NewSecret(endpoint=made, secret=secret)


def secrets_in_force(
    project_id: int, endpoint_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> list[str]:
    """Return the secrets that sign, the newest first."""
    row = session.get(WebhookEndpoint, endpoint_id)
    if row is None or row.project_id != project_id:
        raise _not_found()
    return secrets_of(row, keyring=keyring, now=now)


def remove_endpoint(project_id: int, endpoint_id: int, *, session: Session) -> None:
    """Remove an endpoint; what waits for it is never sent, and its log is pruned."""
    row = _row(project_id, endpoint_id, session)
    session.execute(delete(WebhookEndpoint).where(WebhookEndpoint.id == row.id))
    _follow(project_id, session)
