"""/api/v4/projects/:id/alert_management_integrations/:integration_id: credentials and keys."""

from flask import Blueprint

from blueprints.api_v4.alerts.alert_integrations import AT, ONE
from domain.alerts.integrations import keys as domain
from domain.alerts.integrations.integrations import IntegrationView
from domain.audit.events import Event, EventKind
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import receiver_of
from web.api.operations import operation
from web.api.schemas.alerts.alert_integrations import (
    IntegrationCredentials,
    IntegrationKey,
    KeyQuery,
    KeyRotationBody,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services

alert_integration_keys = Blueprint("alert_integration_keys", __name__, url_prefix=f"{AT}{ONE}")


@alert_integration_keys.get("/credentials")
@operation("alert_integration_keys.credentials", returns=IntegrationCredentials).but(writes=True)
def credentials(project: ProjectView, integration_id: int) -> IntegrationCredentials:
    """Show the URL and the key of an alert integration; the audit log records this."""
    integration = receiver_of(project, integration_id)
    details = {"project": project.path, "type": integration.type.name}
    kind = EventKind.INTEGRATION_KEY_READ
    record_event(Event(kind=kind, subject=integration.name, details=details))
    return IntegrationCredentials.of(integration, _keys(integration))


@alert_integration_keys.get("/keys")
@operation("alert_integration_keys.index", query=KeyQuery, returns=IntegrationKey)
def index(project: ProjectView, integration_id: int) -> Found[IntegrationKey]:
    """List the keys that an alert integration accepts, with their last use."""
    return Found(items=IntegrationKey.all_of(_keys(receiver_of(project, integration_id))))


@alert_integration_keys.post("/keys")
@operation(
    "alert_integration_keys.rotate",
    body=KeyRotationBody,
    returns=IntegrationCredentials,
    status=201,
)
def rotate(
    project: ProjectView, integration_id: int, body: KeyRotationBody
) -> IntegrationCredentials:
    """Replace the key of an alert integration; the old one can stay valid for some time."""
    integration, until = receiver_of(project, integration_id), body.previous_key_expires_at
    domain.reset_key(
        integration.id,
        seen=body.key_id or None,
        previous_until=until,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    old = f"valid until {until:%Y-%m-%d %H:%M} UTC" if until else "no longer valid"
    record_change(f"key replaced; the old one: {old}", project, integration)
    return IntegrationCredentials.of(integration, _keys(integration))


@alert_integration_keys.delete("/keys/<key_id>")
@operation("alert_integration_keys.delete")
def delete(project: ProjectView, integration_id: int, key_id: str) -> None:
    """Revoke the previous key of an alert integration."""
    integration = receiver_of(project, integration_id)
    domain.end_key(integration.id, key_id, session=db.session(), now=now())
    record_change("previous key ended", project, integration)


def _keys(integration: IntegrationView) -> domain.IntegrationKeys:
    return domain.keys_of(
        integration.id, session=db.session(), keyring=services().keyring, now=now()
    )
