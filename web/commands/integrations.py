"""Commands about the integrations that receive alerts."""

from typing import Any, BinaryIO

import click
from flask.cli import AppGroup

from domain.alerts.formats.registry import INTEGRATION_TYPE_NAMES, INTEGRATION_TYPES, type_named
from domain.alerts.integrations import integrations as alert_integrations
from domain.alerts.integrations.integrations import (
    IntegrationDetails,
    IntegrationEdit,
    IntegrationView,
)
from domain.alerts.integrations.keys import keys_of, reset_key
from domain.alerts.integrations.recognition import recognize
from domain.audit.events import Event, EventKind
from domain.clock import written
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError
from domain.grace_period import GracePeriod
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import integration_context, integration_of, receiver_of
from web.api.schemas.alerts.alert_recognition import AlertRecognition
from web.commands.operator import project_at
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, reading, services

#: In bytes: more than a sample can have, so that one of these is refused and not cut.
_LONGEST_FILE = 1024 * 1024
integrations = AppGroup("integrations", help="Alert integrations of projects.")
_ID = click.argument("integration_id", metavar="ID", type=click.IntRange(1, LARGEST_ID))


@integrations.command("create")
@click.argument("project")
@click.option(
    "--type",
    "kind",
    type=click.Choice(INTEGRATION_TYPE_NAMES),
    required=True,
    help=" ".join(each.help for each in INTEGRATION_TYPES),
)
@click.option("--name", required=True, help="Name of the integration.")
@click.option("--api-url", help="URL of the on-call tool (type external).")
@click.option("--inactive", is_flag=True, help="Create it turned off.")
@one_transaction
def create_integration_command(
    *, project: str, kind: str, name: str, api_url: str | None, inactive: bool
) -> dict[str, Any]:
    """Create an integration in PROJECT and print its URL and key."""
    context = integration_context(project_at(project))
    created, key = alert_integrations.create_integration(
        context,
        type_named(kind),
        IntegrationDetails(name=name, active=not inactive, api_url=api_url),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    change = {"change": "created", "project": project, "type": kind, "active": not inactive}
    record_event(Event(kind=EventKind.INTEGRATION_CHANGED, subject=created.name, details=change))
    return {
        "id": created.id,
        "url": created.url if created.receives else None,
        "key": key if created.receives else None,
        "endpoint_identifier": created.endpoint_identifier if created.receives else None,
    }


@integrations.command("list")
@click.argument("project")
@one_transaction
def list_integrations_command(*, project: str) -> dict[str, Any]:
    """List the integrations of PROJECT, oldest first."""
    context = integration_context(project_at(project))
    found = alert_integrations.list_integrations(context, session=db.session())
    return {"integrations": [_shown(each) for each in found]}


@integrations.command("show")
@click.argument("project")
@_ID
@one_transaction
def show_integration_command(*, project: str, integration_id: int) -> dict[str, Any]:
    """Show the integration ID of PROJECT."""
    return _shown(integration_of(project_at(project), integration_id))


@integrations.command("change")
@click.argument("project")
@_ID
@click.option("--name", help="New name; the old URL keeps working.")
@click.option("--active/--inactive", default=None, help="Turn it on or off.")
@click.option("--api-url", help="New URL of the on-call tool (type external).")
@click.option(
    "--resolve-after-minutes",
    type=int,
    help="Resolve alerts without a report for so many minutes; 0: never.",
)
@one_transaction
def change_integration_command(
    *, project: str, integration_id: int, **given: Any
) -> dict[str, Any]:
    """Change the integration ID of PROJECT. Omitted options keep their values."""
    place = project_at(project)
    alert_integrations.change_integration(
        integration_id, IntegrationEdit(**given), project_id=place.id, session=db.session()
    )
    changed = integration_of(place, integration_id)
    record_change("changed", place, changed)
    return _shown(changed)


@integrations.command("reset-key")
@click.argument("project")
@_ID
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.DAY.key,
    show_default=True,
    help="How long the old key is accepted beside the new one.",
)
@one_transaction
def reset_key_command(*, project: str, integration_id: int, overlap: str) -> dict[str, Any]:
    """Create a new key of the integration ID of PROJECT and print it."""
    place, session, keyring, moment = project_at(project), db.session(), services().keyring, now()
    integration = receiver_of(place, integration_id)
    length = GracePeriod.of(overlap).length
    until = moment + length if length else None
    reset_key(
        integration.id,
        seen=None,
        previous_until=until,
        session=session,
        keyring=keyring,
        now=moment,
    )
    record_change(f"key replaced; the old one is accepted for: {overlap}", place, integration)
    keys = keys_of(integration.id, session=session, keyring=keyring, now=moment)
    return {"id": integration.id, "url": integration.url, "key": keys.clear}


@integrations.command("recognize")
@click.argument("file", type=click.File("rb"))
@one_transaction
def recognize_payload_command(*, file: BinaryIO) -> dict[str, Any]:
    """Say which tool posts what is in FILE (- for standard input), and propose a mapping."""
    body = file.read(_LONGEST_FILE)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        message = "The payload is not UTF-8."
        raise InvalidError(message, field="sample") from error
    found = recognize(text, now=now(), reading=reading())
    return AlertRecognition.of(found).model_dump(mode="json")


@integrations.command("delete")
@click.argument("project")
@_ID
@one_transaction
def delete_integration_command(*, project: str, integration_id: int) -> dict[str, Any]:
    """Delete the integration ID of PROJECT; its alerts stay."""
    place = project_at(project)
    gone = integration_of(place, integration_id)
    alert_integrations.remove_integration(gone.id, session=db.session())
    record_change("deleted", place, gone)
    return {"id": gone.id, "name": gone.name, "deleted": True}


def _shown(view: IntegrationView) -> dict[str, Any]:
    return {
        "id": view.id,
        "name": view.name,
        "type": view.type.name,
        "active": view.active,
        "url": view.url if view.receives else None,
        "api_url": view.api_url,
        "resolve_after_minutes": view.resolve_after_minutes,
        "last_delivery_at": written(view.last_delivery_at) if view.last_delivery_at else None,
        "last_outcome": view.last_outcome,
    }
