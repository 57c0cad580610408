"""Commands about outgoing webhooks of projects."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.alerts.matching.conditions import conditions_from
from domain.grace_period import GracePeriod
from domain.projects.access import follow_to_project
from domain.projects.views import ProjectView, Viewer
from domain.webhooks.endpoints import EndpointDetails, EndpointView, list_endpoints
from domain.webhooks.events import ALL, WebhookEvent
from web.commands.transaction import one_transaction
from web.extensions import db
from web.services import now
from web.webhooks import changes

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)

webhooks = AppGroup("webhooks", help="Outgoing webhooks of projects.")


@webhooks.command("create")
@click.argument("project")
@click.option("--url", required=True, help="An https or http URL.")
@click.option(
    "--events",
    default=ALL,
    show_default=True,
    help=f"* for all, or some of {', '.join(WebhookEvent)}, separated by commas.",
)
@click.option("--labels", default="", help='Only alerts that match: team="db", host=~"web.*"')
@one_transaction
def create_command(*, project: str, url: str, events: str, labels: str) -> dict[str, Any]:
    """Create a webhook of PROJECT and print its secret, which is shown only once."""
    details = EndpointDetails(
        url=url,
        events=tuple(events.replace(",", " ").split()),
        conditions=conditions_from({"labels": labels}),
    )
    made = changes.create(_project(project), details)
    return {**_as_json(made.endpoint), "secret": made.secret}


@webhooks.command("list")
@click.argument("project")
@one_transaction
def list_command(*, project: str) -> dict[str, Any]:
    """List the webhooks of PROJECT with the state of their delivery."""
    found = list_endpoints(_project(project).id, session=db.session(), now=now())
    return {"webhooks": [_as_json(each) for each in found]}


@webhooks.command("show")
@click.argument("project")
@click.argument("webhook_id", type=int)
@one_transaction
def show_command(*, project: str, webhook_id: int) -> dict[str, Any]:
    """Show a webhook with the state of its delivery."""
    return _as_json(changes.get(_project(project), webhook_id))


@webhooks.command("change")
@click.argument("project")
@click.argument("webhook_id", type=int)
@click.option("--url", help="An https or http URL.")
@click.option("--events", help="As for `create`.")
@click.option("--labels", help="As for `create`; an empty string for all alerts.")
@one_transaction
def change_command(
    *, project: str, webhook_id: int, url: str | None, events: str | None, labels: str | None
) -> dict[str, Any]:
    """Change a webhook. Omitted options keep their values."""
    place = _project(project)
    present = changes.get(place, webhook_id)
    details = EndpointDetails(
        url=present.url if url is None else url,
        events=present.events if events is None else tuple(events.replace(",", " ").split()),
        conditions=(present.conditions if labels is None else conditions_from({"labels": labels})),
    )
    return _as_json(changes.change(place, webhook_id, details))


@webhooks.command("rotate")
@click.argument("project")
@click.argument("webhook_id", type=int)
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.DAY.key,
    show_default=True,
    help="How long the old secret also signs.",
)
@one_transaction
def rotate_command(*, project: str, webhook_id: int, overlap: str) -> dict[str, Any]:
    """Create a new secret and print it. It is shown only once."""
    until = now() + GracePeriod.of(overlap).length
    made = changes.rotate(_project(project), webhook_id, previous_until=until)
    return {**_as_json(made.endpoint), "secret": made.secret}


@webhooks.command("pause")
@click.argument("project")
@click.argument("webhook_id", type=int)
@one_transaction
def pause_command(*, project: str, webhook_id: int) -> dict[str, Any]:
    """Stop sending to a webhook."""
    return _as_json(changes.pause(_project(project), webhook_id))


@webhooks.command("resume")
@click.argument("project")
@click.argument("webhook_id", type=int)
@one_transaction
def resume_command(*, project: str, webhook_id: int) -> dict[str, Any]:
    """Resume a webhook and send its waiting deliveries."""
    return _as_json(changes.resume(_project(project), webhook_id))


@webhooks.command("test")
@click.argument("project")
@click.argument("webhook_id", type=int)
@one_transaction
def test_command(*, project: str, webhook_id: int) -> dict[str, Any]:
    """Send a test message and print the result."""
    result = changes.send_test(_project(project), webhook_id).attempt
    return {
        "delivered": result.problem is None,
        "status": result.status,
        "error": result.problem,
        "duration_ms": result.milliseconds,
    }


@webhooks.command("delete")
@click.argument("project")
@click.argument("webhook_id", type=int)
@one_transaction
def delete_command(*, project: str, webhook_id: int) -> dict[str, Any]:
    """Delete a webhook; waiting deliveries are never sent."""
    removed = changes.remove(_project(project), webhook_id)
    return {"id": removed.id, "url": removed.url, "undelivered": removed.backlog}


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


def _as_json(webhook: EndpointView) -> dict[str, Any]:
    delivered = webhook.last_delivered_at
    return {
        "id": webhook.id,
        "url": webhook.url,
        "events": list(webhook.events),
        "state": webhook.state,
        "backlog": webhook.backlog,
        "failures": webhook.failures,
        "last_error": webhook.last_error,
        "last_delivered_at": delivered.isoformat() if delivered else None,
    }
