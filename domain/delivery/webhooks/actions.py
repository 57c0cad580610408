"""Actions on the webhooks of a project, for maintainers."""

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.authorizations import lock_authorization
from domain.audit.events import EventKind
from domain.core.types.pagination import ListPage
from domain.delivery.destination_actions import DestinationActions, DestinationEventKinds
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody
from domain.delivery.outgoing.destinations import DestinationWithSecret
from domain.delivery.outgoing.signing import OutgoingMessage, generate_message_id
from domain.delivery.webhooks import endpoints
from domain.delivery.webhooks.endpoints import WEBHOOK_KIND
from domain.delivery.webhooks.queueing import build_project_payloads, build_webhook_body
from domain.delivery.webhooks.types import (
    TEST_EVENT,
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

_WEBHOOK_ACTIONS = DestinationActions(
    WEBHOOK_KIND,
    DestinationEventKinds(
        created=EventKind.WEBHOOK_CREATED,
        changed=EventKind.WEBHOOK_CHANGED,
        secret_rotated=EventKind.WEBHOOK_SECRET_ROTATED,
        removed=EventKind.WEBHOOK_REMOVED,
    ),
)


@read_action("webhooks.index")
def list_webhooks(
    work: UnitOfWork, project: ProjectView, query: DestinationQuery
) -> ListPage[Webhook]:
    """List the webhooks of a project."""
    return _WEBHOOK_ACTIONS.list_destinations(work, query, project)


@read_action("webhooks.show")
def show_webhook(work: UnitOfWork, project: ProjectView, webhook_id: int) -> Webhook:
    """Show a webhook and its delivery status."""
    return _WEBHOOK_ACTIONS.get_destination(work, webhook_id, project)


@read_action("hooks.index")
def list_hooks(work: UnitOfWork, project: ProjectView, query: HookQuery) -> ListPage[Hook]:
    """List the webhooks of a project in the format of GitLab's API."""
    found = _WEBHOOK_ACTIONS.list_destinations(work, query, project)
    return ListPage(items=[_build_hook(each, project) for each in found.items], total=found.total)


@read_action("hooks.show")
def show_hook(work: UnitOfWork, project: ProjectView, webhook_id: int) -> Hook:
    """Show a webhook in the format of GitLab's API."""
    return _build_hook(_WEBHOOK_ACTIONS.get_destination(work, webhook_id, project), project)


@action("webhooks.create")
def create_webhook(work: UnitOfWork, project: ProjectView, new: WebhookBody) -> NewWebhook:
    """Create a webhook and return its secret.

    No other response contains the secret.
    """
    authorization_id = lock_authorization(work)
    made = _WEBHOOK_ACTIONS.create_destination(work, new.details, project, is_paused=not new.active)
    WEBHOOK_KIND.store_authorization(made.destination.id, authorization_id, session=work.session)
    return _build_new_webhook(made)


@action("webhooks.change")
def change_webhook(
    work: UnitOfWork, project: ProjectView, webhook_id: int, change: WebhookChangeBody
) -> Webhook:
    """Change, pause or resume a webhook.

    The URL, the events and the conditions can be changed.
    """
    present = _WEBHOOK_ACTIONS.get_destination(work, webhook_id, project).details
    changed = _WEBHOOK_ACTIONS.change_destination(
        work, webhook_id, change.apply_to_details(present), project
    )
    if changed.url != present.url:
        WEBHOOK_KIND.store_authorization(webhook_id, lock_authorization(work), session=work.session)
    if change.active is None:
        return changed
    return (
        _WEBHOOK_ACTIONS.resume_destination if change.active else _WEBHOOK_ACTIONS.pause_destination
    )(work, webhook_id, project)


@action("webhooks.change", command="pause")
def pause_webhook(work: UnitOfWork, project: ProjectView, webhook_id: int) -> Webhook:
    """Pause a webhook."""
    return _WEBHOOK_ACTIONS.pause_destination(work, webhook_id, project)


@action("webhooks.change", command="resume")
def resume_webhook(work: UnitOfWork, project: ProjectView, webhook_id: int) -> Webhook:
    """Resume a webhook and send its waiting deliveries."""
    return _WEBHOOK_ACTIONS.resume_destination(work, webhook_id, project)


@action("webhooks.rotate_secret", command="rotate")
def rotate_secret(
    work: UnitOfWork, project: ProjectView, webhook_id: int, rotation: SecretRotationBody
) -> NewWebhook:
    """Create a new signing secret for a webhook.

    Messages are also signed with the old secret until a chosen time.
    """
    return _build_new_webhook(_WEBHOOK_ACTIONS.rotate_secret(work, webhook_id, rotation, project))


@action("webhooks.delete")
def delete_webhook(work: UnitOfWork, project: ProjectView, webhook_id: int) -> Webhook:
    """Delete a webhook and its queued deliveries.

    Queued deliveries are never sent.
    """
    return _WEBHOOK_ACTIONS.delete_destination(work, webhook_id, project)


@action("webhooks.send_test", command="test")
def send_test(work: UnitOfWork, project: ProjectView, webhook_id: int) -> WebhookTest:
    """Send a test message immediately and return the result."""
    session, base_url = work.session, work.settings.base_url
    shown = build_project_payloads([project.id], base_url=base_url, session=session)[project.id]
    body = build_webhook_body(TEST_EVENT, work.now, shown).encode()
    message = OutgoingMessage(id=f"msg_{generate_message_id()}", body=body)
    attempt = _WEBHOOK_ACTIONS.send_message(work, webhook_id, message, project)
    stored = endpoints.store_test_delivery(work, webhook_id, message, attempt)
    return WebhookTest.from_result(attempt, delivery_id=stored)


@read_action("webhook_deliveries.index")
def list_deliveries(
    work: UnitOfWork, project: ProjectView, webhook_id: int, query: WebhookDeliveryQuery
) -> ListPage[WebhookDelivery]:
    """List the deliveries to a webhook, newest first."""
    show_webhook(work, project, webhook_id)
    found = endpoints.list_deliveries(
        webhook_id, query.state, query.requested_range, session=work.session
    )
    return ListPage.from_keyset_page(found, lambda delivery: delivery)


@read_action("webhook_deliveries.show")
def show_delivery(
    work: UnitOfWork, project: ProjectView, webhook_id: int, delivery_id: int
) -> WebhookDeliveryDetail:
    """Show a delivery with its request and response."""
    show_webhook(work, project, webhook_id)
    return endpoints.get_delivery(webhook_id, delivery_id, session=work.session)


@action("webhook_deliveries.send_again")
def resend_delivery(
    work: UnitOfWork, project: ProjectView, webhook_id: int, delivery_id: int
) -> WebhookDeliveryDetail:
    """Queue a delivery again with the same ID."""
    show_webhook(work, project, webhook_id)
    endpoints.requeue_delivery(webhook_id, delivery_id, session=work.session, now=work.now)
    return endpoints.get_delivery(webhook_id, delivery_id, session=work.session)


def _build_hook(webhook: Webhook, project: ProjectView) -> Hook:
    return Hook(
        id=webhook.id,
        url=webhook.url,
        project_id=project.id,
        created_at=webhook.created_at,
        alert_status="executable" if webhook.active else "disabled",
        disabled_until=webhook.next_try_at if webhook.failures else None,
    )


def _build_new_webhook(destination_with_secret: DestinationWithSecret[Webhook]) -> NewWebhook:
    return NewWebhook(
        **dict(destination_with_secret.destination), secret=destination_with_secret.secret
    )
