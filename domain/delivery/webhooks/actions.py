"""Actions of maintainers on the webhooks of a project."""

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.access.authorizations import held_authorization
from domain.audit.events import EventKind
from domain.core.types.base import Found
from domain.delivery.destination_actions import Changes, DestinationEvents
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody
from domain.delivery.outgoing.destinations import NewSecret
from domain.delivery.outgoing.signing import Message, new_message_id
from domain.delivery.webhooks import endpoints
from domain.delivery.webhooks.endpoints import WEBHOOKS
from domain.delivery.webhooks.queueing import body_of, projects_of
from domain.delivery.webhooks.types import (
    TESTED,
    Hook,
    HookQuery,
    NewWebhook,
    Webhook,
    WebhookBody,
    WebhookChangeBody,
    WebhookDelivery,
    WebhookDeliveryDetail,
    WebhookDeliveryQuery,
    WebhookTest,
)
from domain.projects.views import ProjectView

_CHANGES = Changes(
    WEBHOOKS,
    DestinationEvents(
        created=EventKind.WEBHOOK_CREATED,
        changed=EventKind.WEBHOOK_CHANGED,
        secret_rotated=EventKind.WEBHOOK_SECRET_ROTATED,
        removed=EventKind.WEBHOOK_REMOVED,
    ),
)


@question("webhooks.index")
def list_webhooks(work: Work, project: ProjectView, query: DestinationQuery) -> Found[Webhook]:
    """List the webhooks of a project."""
    return _CHANGES.list(work, query, project)


@question("webhooks.show")
def show_webhook(work: Work, project: ProjectView, webhook_id: int) -> Webhook:
    """Show a webhook and the state of its delivery."""
    return _CHANGES.get(work, webhook_id, project)


@question("hooks.index")
def list_hooks(work: Work, project: ProjectView, query: HookQuery) -> Found[Hook]:
    """List the webhooks of a project in the format of GitLab's API."""
    found = _CHANGES.list(work, query, project)
    return Found(items=[_hook(each, project) for each in found.items], total=found.total)


@question("hooks.show")
def show_hook(work: Work, project: ProjectView, webhook_id: int) -> Hook:
    """Show a webhook in the format of GitLab's API."""
    return _hook(_CHANGES.get(work, webhook_id, project), project)


@action("webhooks.create")
def create_webhook(work: Work, project: ProjectView, new: WebhookBody) -> NewWebhook:
    """Create a webhook and return its secret once.

    No other response contains the secret.
    """
    authorization_id = held_authorization(work)
    made = _CHANGES.create(work, new.details, project, is_paused=not new.active)
    WEBHOOKS.note_author(made.destination.id, authorization_id, session=work.session)
    return _with_secret(made)


@action("webhooks.change")
def change_webhook(
    work: Work, project: ProjectView, webhook_id: int, change: WebhookChangeBody
) -> Webhook:
    """Change, pause or resume a webhook.

    The URL, the events and the conditions can change.
    """
    present = _CHANGES.get(work, webhook_id, project).details
    changed = _CHANGES.change(work, webhook_id, change.details(present), project)
    if changed.url != present.url:
        WEBHOOKS.note_author(webhook_id, held_authorization(work), session=work.session)
    if change.active is None:
        return changed
    return (_CHANGES.resume if change.active else _CHANGES.pause)(work, webhook_id, project)


@action("webhooks.change", command="pause")
def pause_webhook(work: Work, project: ProjectView, webhook_id: int) -> Webhook:
    """Pause a webhook."""
    return _CHANGES.pause(work, webhook_id, project)


@action("webhooks.change", command="resume")
def resume_webhook(work: Work, project: ProjectView, webhook_id: int) -> Webhook:
    """Resume a webhook and send its waiting deliveries."""
    return _CHANGES.resume(work, webhook_id, project)


@action("webhooks.rotate_secret", command="rotate")
def rotate_secret(
    work: Work, project: ProjectView, webhook_id: int, rotation: SecretRotationBody
) -> NewWebhook:
    """Create a new signing secret, which overlaps with the old one.

    The old secret also signs until a chosen time.
    """
    return _with_secret(_CHANGES.rotate_secret(work, webhook_id, rotation, project))


@action("webhooks.delete")
def delete_webhook(work: Work, project: ProjectView, webhook_id: int) -> Webhook:
    """Delete a webhook with its queued deliveries.

    Queued deliveries are never sent.
    """
    return _CHANGES.remove(work, webhook_id, project)


@action("webhooks.send_test", command="test")
def send_test(work: Work, project: ProjectView, webhook_id: int) -> WebhookTest:
    """Send a test message immediately and return the result."""
    session, base_url = work.session, work.settings.base_url
    shown = projects_of([project.id], base_url=base_url, session=session)[project.id]
    body = body_of(TESTED, work.now, shown).encode()
    message = Message(id=f"msg_{new_message_id()}", body=body)
    attempt = _CHANGES.send(work, webhook_id, message, project)
    stored = endpoints.store_test(webhook_id, message, attempt, session=session, now=work.now)
    return WebhookTest.of(attempt, delivery_id=stored)


@question("webhook_deliveries.index")
def list_deliveries(
    work: Work, project: ProjectView, webhook_id: int, query: WebhookDeliveryQuery
) -> Found[WebhookDelivery]:
    """List the deliveries to a webhook, newest first."""
    show_webhook(work, project, webhook_id)
    found = endpoints.list_deliveries(webhook_id, query.state, query.part, session=work.session)
    return Found.of_page(found, lambda delivery: delivery)


@question("webhook_deliveries.show")
def show_delivery(
    work: Work, project: ProjectView, webhook_id: int, delivery_id: int
) -> WebhookDeliveryDetail:
    """Show a delivery with its request and response."""
    show_webhook(work, project, webhook_id)
    return endpoints.get_delivery(webhook_id, delivery_id, session=work.session)


@action("webhook_deliveries.send_again")
def send_again(
    work: Work, project: ProjectView, webhook_id: int, delivery_id: int
) -> WebhookDeliveryDetail:
    """Queue a delivery again with the same id."""
    show_webhook(work, project, webhook_id)
    endpoints.send_again(webhook_id, delivery_id, session=work.session, now=work.now)
    return endpoints.get_delivery(webhook_id, delivery_id, session=work.session)


def _hook(webhook: Webhook, project: ProjectView) -> Hook:
    return Hook(
        id=webhook.id,
        url=webhook.url,
        project_id=project.id,
        created_at=webhook.created_at,
        alert_status="executable" if webhook.active else "disabled",
        disabled_until=webhook.next_try_at if webhook.failures else None,
    )


def _with_secret(made: NewSecret[Webhook]) -> NewWebhook:
    return NewWebhook(**dict(made.destination), secret=made.secret)
