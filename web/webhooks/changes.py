"""What maintainers do with the webhooks of a project, each with its audit event."""

from dataclasses import dataclass
from datetime import datetime

from domain.audit.events import Event, EventKind
from domain.clock import written
from domain.database.locks import release_locks
from domain.outgoing.claims import Attempt
from domain.outgoing.signing_secrets import USUAL_OVERLAP
from domain.outgoing_urls import parse_outgoing_url
from domain.projects.views import ProjectView
from domain.webhooks import endpoints, log
from domain.webhooks.endpoints import EndpointDetails, EndpointView, NewSecret
from domain.webhooks.payloads import projects_of
from domain.webhooks.test_messages import message_of_test
from web.extensions import db
from web.http.audit_events import record_event
from web.outgoing.attempts import attempt
from web.outgoing.client import OutgoingClient
from web.services import now, services, settings


@dataclass(frozen=True, kw_only=True)
class SentTest:
    """What came of a test message, and where the log has it."""

    attempt: Attempt
    #: None if the webhook was removed meanwhile.
    delivery_id: int | None


def get(project: ProjectView, webhook_id: int) -> EndpointView:
    """Return a webhook of a project, or raise NotFoundError."""
    return endpoints.get_endpoint(project.id, webhook_id, session=db.session(), now=now())


def create(project: ProjectView, details: EndpointDetails) -> NewSecret:
    """Create a webhook, which gets the events from now on."""
    made = endpoints.create_endpoint(
        project.id, details, session=db.session(), keyring=services().keyring, now=now()
    )
    _record(EventKind.WEBHOOK_CREATED, project, made.endpoint)
    return made


def change(project: ProjectView, webhook_id: int, details: EndpointDetails) -> EndpointView:
    """Change URL, events and conditions of a webhook."""
    before = get(project, webhook_id)
    if before.details == details:
        return before
    endpoints.change_endpoint(project.id, webhook_id, details, session=db.session())
    after = get(project, webhook_id)
    _record(EventKind.WEBHOOK_CHANGED, project, after, before=before.shown_url)
    return after


def pause(project: ProjectView, webhook_id: int) -> EndpointView:
    """Stop sending to a webhook."""
    before = get(project, webhook_id)
    if before.paused_at is None:
        _record(EventKind.WEBHOOK_CHANGED, project, before, change="paused")
    endpoints.pause_endpoint(project.id, webhook_id, session=db.session(), now=now())
    return get(project, webhook_id)


def resume(project: ProjectView, webhook_id: int) -> EndpointView:
    """Send to a webhook from now on, and at once what waits."""
    before = get(project, webhook_id)
    if before.paused_at is not None:
        _record(EventKind.WEBHOOK_CHANGED, project, before, change="resumed")
    endpoints.resume_endpoint(project.id, webhook_id, session=db.session())
    return get(project, webhook_id)


def rotate(
    project: ProjectView, webhook_id: int, *, previous_until: datetime | None = None
) -> NewSecret:
    """Create a new secret; the old one signs beside it until a moment, usually for a day."""
    until = previous_until or now() + USUAL_OVERLAP
    made = endpoints.rotate_secret(
        project.id,
        webhook_id,
        previous_until=until,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    ends = written(max(until, now()))
    _record(EventKind.WEBHOOK_SECRET_ROTATED, project, made.endpoint, old_secret_ends=ends)
    return made


def remove(project: ProjectView, webhook_id: int) -> EndpointView:
    """Remove a webhook, and return what it was; what waits for it is never sent."""
    before = get(project, webhook_id)
    endpoints.remove_endpoint(project.id, webhook_id, session=db.session())
    _record(EventKind.WEBHOOK_REMOVED, project, before, undelivered=before.backlog)
    return before


def send_again(project: ProjectView, webhook_id: int, delivery_id: int) -> EndpointView:
    """Queue a delivery again, with the same id."""
    endpoint = get(project, webhook_id)
    log.send_again(webhook_id, delivery_id, session=db.session(), now=now())
    return endpoint


def send_test(project: ProjectView, webhook_id: int) -> SentTest:
    """Send a test message at once, before those that wait, and return what came of it."""
    endpoint, moment, session = get(project, webhook_id), now(), db.session()
    secrets = endpoints.secrets_in_force(
        project.id, webhook_id, session=session, keyring=services().keyring, now=moment
    )
    shown = projects_of([project.id], base_url=settings().base_url, session=session)[project.id]
    message = message_of_test(shown, now=moment)
    release_locks(session)  # The other side may take its time.
    client = OutgoingClient.of(settings())
    try:
        made = attempt(client, endpoint.url, message, secrets, now=moment)
    finally:
        client.close()
    stored = log.store_test(webhook_id, message, made, session=session, now=moment)
    return SentTest(attempt=made, delivery_id=stored)


def _record(
    kind: EventKind, project: ProjectView, endpoint: EndpointView, **details: object
) -> None:
    told = {"project": project.path, "webhook_id": endpoint.id, **details}
    subject = parse_outgoing_url(endpoint.url).shown
    record_event(Event(kind=kind, subject=subject, details=told))
