"""/api/v4/projects/:id/alert_management_integrations: integrations, and their test alerts."""

from functools import partial

from flask import Blueprint

from domain.alerts.formats.registry import type_named
from domain.alerts.integrations import integrations as domain
from domain.audit.events import Actor
from domain.database.paging import LARGEST_ID
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import integration_context, integration_of, receiver_of
from web.alerts.user_deliveries import dry_run, send_test
from web.api.operations import operation
from web.api.schemas.alerts.alert_deliveries import TestAlertBody, TestAlertResult
from web.api.schemas.alerts.alert_integrations import (
    Integration,
    IntegrationBody,
    IntegrationQuery,
    IntegrationSummary,
    IntegrationWithKey,
    NewIntegrationBody,
)
from web.extensions import db
from web.services import now, services

AT = "/projects/<path:reference>/alert_management_integrations"
#: The converter refuses numbers that databases reject.
ONE = f"/<int(max={LARGEST_ID}):integration_id>"

alert_integrations = Blueprint("alert_integrations", __name__, url_prefix=AT)


@alert_integrations.get("")
@operation("alert_integrations.index", query=IntegrationQuery, returns=IntegrationSummary)
def index(project: ProjectView, query: IntegrationQuery) -> Found[IntegrationSummary]:
    """List the alert integrations of a project."""
    context = integration_context(project)
    found = domain.numbered_integrations(context, query.part, session=db.session())
    return Found.of(found, partial(IntegrationSummary.of, viewer=project))


@alert_integrations.post("")
@operation(
    "alert_integrations.create", body=NewIntegrationBody, returns=IntegrationWithKey, status=201
)
def create(project: ProjectView, body: NewIntegrationBody) -> IntegrationWithKey:
    """Create an alert integration."""
    created, key = domain.create_integration(
        integration_context(project),
        type_named(body.type),
        body.details,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    record_change("created", project, created)
    return IntegrationWithKey.with_key(created, key)


@alert_integrations.get(ONE)
@operation("alert_integrations.show", returns=Integration)
def show(project: ProjectView, integration_id: int) -> Integration:
    """Show an alert integration."""
    return Integration.of(integration_of(project, integration_id))


@alert_integrations.put(ONE)
@operation("alert_integrations.change", body=IntegrationBody, returns=Integration)
def change(project: ProjectView, integration_id: int, body: IntegrationBody) -> Integration:
    """Change the name or the API URL of an alert integration, or turn it on or off."""
    before = integration_of(project, integration_id)
    domain.change_integration(
        integration_id, body.edit, project_id=project.id, session=db.session()
    )
    after = integration_of(project, integration_id)
    if after.details != before.details:
        record_change("changed", project, after)
    return Integration.of(after)


@alert_integrations.delete(ONE)
@operation("alert_integrations.delete")
def delete(project: ProjectView, integration_id: int) -> None:
    """Delete an alert integration; its alerts stay."""
    integration = integration_of(project, integration_id)
    domain.remove_integration(integration.id, session=db.session())
    record_change("deleted", project, integration)


@alert_integrations.post(f"{ONE}/test")
@operation("alert_integrations.test", body=TestAlertBody, returns=TestAlertResult)
def test(
    project: ProjectView, integration_id: int, body: TestAlertBody, actor: Actor
) -> TestAlertResult:
    """Send a test alert, or explain what it would do."""
    integration = receiver_of(project, integration_id)
    example = integration.format.example_body(now=now())
    payload = example if body.payload is None else body.payload
    do = dry_run if body.dry_run else send_test
    return TestAlertResult.of(do(integration, payload.encode(), sender=actor.name))
