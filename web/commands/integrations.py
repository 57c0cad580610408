"""Commands about the integrations that receive alerts."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations import integrations as alert_integrations
from domain.alerts.integrations.integrations import PLACEHOLDER_API_URL, IntegrationDetails
from domain.audit.events import Event, EventKind
from domain.projects.access import follow_to_project
from domain.projects.views import Viewer
from web.alerts.integration_context import integration_context
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services

_PLACEHOLDERS = {IntegrationType.PROMETHEUS.value: PLACEHOLDER_API_URL}
#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)

integrations = AppGroup("integrations", help="Alert integrations of projects.")


@integrations.command("create")
@click.argument("project")
@click.option(
    "--type",
    "kind",
    type=click.Choice([kind.value for kind in IntegrationType]),
    required=True,
    help="http: any JSON. prometheus: Alertmanager's webhook. external: link to an on-call tool.",
)
@click.option("--name", required=True, help="Name of the integration.")
@click.option("--api-url", help="URL of the on-call tool (type external).")
@click.option("--inactive", is_flag=True, help="Create it turned off.")
@one_transaction
def create_integration_command(
    *, project: str, kind: str, name: str, api_url: str | None, inactive: bool
) -> dict[str, Any]:
    """Create an integration in PROJECT and print its URL and key."""
    context = integration_context(follow_to_project(project, _OPERATOR, session=db.session()))
    created, key = alert_integrations.create_integration(
        context,
        IntegrationType(kind),
        IntegrationDetails(
            name=name, active=not inactive, api_url=api_url or _PLACEHOLDERS.get(kind)
        ),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    change = {"change": "created", "project": project, "type": kind, "active": not inactive}
    record_event(Event(kind=EventKind.INTEGRATION_CHANGED, subject=created.name, details=change))
    return {
        "id": created.id,
        "url": created.url,
        "key": key,
        "endpoint_identifier": created.endpoint_identifier,
    }
