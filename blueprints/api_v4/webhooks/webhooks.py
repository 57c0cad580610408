"""/api/v4/projects/:id/webhooks: outgoing webhooks of a project."""

from dataclasses import replace

from flask import Blueprint

from domain.database.paging import LARGEST_ID
from domain.projects.views import ProjectView
from domain.webhooks.endpoints import list_endpoints
from web.api.operations import Found, operation
from web.api.schemas.instance.audit_streams import SecretRotationBody
from web.api.schemas.webhooks.webhooks import (
    NewWebhook,
    Webhook,
    WebhookBody,
    WebhookChangeBody,
    WebhookQuery,
    WebhookTest,
)
from web.extensions import db
from web.services import now
from web.webhooks import changes

AT = "/projects/<path:reference>/webhooks"
#: The converter refuses numbers that databases reject.
ONE = f"/<int(max={LARGEST_ID}):webhook_id>"

webhooks = Blueprint("webhooks", __name__, url_prefix=AT)


@webhooks.get("")
@operation("webhooks.index", query=WebhookQuery, returns=Webhook)
def index(project: ProjectView, query: WebhookQuery) -> Found[Webhook]:
    """List the webhooks of a project."""
    found = list_endpoints(project.id, session=db.session(), now=now())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[Webhook.of(each) for each in shown], total=len(found))


@webhooks.post("")
@operation("webhooks.create", body=WebhookBody, returns=NewWebhook, status=201)
def create(project: ProjectView, body: WebhookBody) -> NewWebhook:
    """Create a webhook; only this response contains its secret."""
    made = changes.create(project, body.details)
    if not body.active:
        made = replace(made, endpoint=changes.pause(project, made.endpoint.id))
    return NewWebhook.with_secret(made)


@webhooks.get(ONE)
@operation("webhooks.show", returns=Webhook)
def show(project: ProjectView, webhook_id: int) -> Webhook:
    """Show a webhook and the state of its delivery."""
    return Webhook.of(changes.get(project, webhook_id))


@webhooks.put(ONE)
@operation("webhooks.change", body=WebhookChangeBody, returns=Webhook)
def change(project: ProjectView, webhook_id: int, body: WebhookChangeBody) -> Webhook:
    """Change URL, events and conditions of a webhook, pause or resume it."""
    present = changes.get(project, webhook_id).details
    changes.change(project, webhook_id, body.details(present))
    if body.active is not None:
        (changes.resume if body.active else changes.pause)(project, webhook_id)
    return Webhook.of(changes.get(project, webhook_id))


@webhooks.delete(ONE)
@operation("webhooks.delete")
def delete(project: ProjectView, webhook_id: int) -> None:
    """Delete a webhook; waiting deliveries are never sent."""
    changes.remove(project, webhook_id)


@webhooks.post(f"{ONE}/rotate_secret")
@operation("webhooks.rotate_secret", body=SecretRotationBody, returns=NewWebhook, status=201)
def rotate_secret(project: ProjectView, webhook_id: int, body: SecretRotationBody) -> NewWebhook:
    """Create a new secret; the old one signs beside it until a chosen time."""
    until = body.previous_secret_expires_at
    return NewWebhook.with_secret(changes.rotate(project, webhook_id, previous_until=until))


@webhooks.post(f"{ONE}/test")
@operation("webhooks.send_test", returns=WebhookTest)
def send_test(project: ProjectView, webhook_id: int) -> WebhookTest:
    """Send a test message immediately, and return the result."""
    return WebhookTest.of_webhook(changes.send_test(project, webhook_id))
