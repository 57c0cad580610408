"""/api/v4/projects/:id/alert_management_integrations/:integration_id/mapping: custom mappings."""

from flask import Blueprint

from blueprints.api_v4.alerts.alert_integrations import AT, ONE
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations import samples
from domain.alerts.integrations.integrations import IntegrationView
from domain.alerts.integrations.mapping_preview import preview_on_deliveries, preview_on_sample
from domain.alerts.integrations.resolving import never_resolves
from domain.alerts.integrations.samples import MappingDraft, Sample
from domain.alerts.reading.mapping_rules import MappingRules
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.projects.views import ProjectView
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import integration_context, integration_of
from web.api.operations import operation
from web.api.schemas.alerts.alert_mappings import (
    AlertMapping,
    AlertMappingBody,
    AlertMappingPreview,
)
from web.extensions import db
from web.services import now, reading

alert_mappings = Blueprint("alert_mappings", __name__, url_prefix=f"{AT}{ONE}/mapping")


@alert_mappings.get("")
@operation("alert_mappings.show", returns=AlertMapping)
def show(project: ProjectView, integration_id: int) -> AlertMapping:
    """Show the sample and the mapping of an alert integration."""
    return _saved(project, integration_id)


@alert_mappings.put("")
@operation("alert_mappings.change", body=AlertMappingBody, returns=AlertMapping)
def change(project: ProjectView, integration_id: int, body: AlertMappingBody) -> AlertMapping:
    """Save a sample and a mapping for new deliveries."""
    integration = _mappable(project, integration_id)
    draft = _draft(body, integration)
    samples.save_mapping(integration_id, draft.sample, draft.mapping, session=db.session())
    record_change("mapping saved", project, integration)
    return _saved(project, integration_id)


@alert_mappings.delete("")
@operation("alert_mappings.delete")
def delete(project: ProjectView, integration_id: int) -> None:
    """Delete the sample and the mapping; fields are read from the keys with their names again."""
    integration = integration_of(project, integration_id)
    samples.remove_mapping(integration_id, session=db.session())
    record_change("mapping removed", project, integration)


@alert_mappings.post("/preview")
@operation("alert_mappings.preview", body=AlertMappingBody, returns=AlertMappingPreview).but(
    writes=False
)
def preview(
    project: ProjectView, integration_id: int, body: AlertMappingBody
) -> AlertMappingPreview:
    """Show what a mapping would read from its sample and from the latest deliveries."""
    integration = _mappable(project, integration_id)
    draft = _draft(body, integration)
    mappings = (integration.mapping, draft.mapping)
    return AlertMappingPreview.of(
        draft.sample,
        preview_on_sample(draft, integration.format, now=now(), reading=reading()),
        preview_on_deliveries(integration.id, mappings, session=db.session(), reading=reading()),
    )


def _mappable(project: ProjectView, integration_id: int) -> IntegrationView:
    integration = integration_of(project, integration_id)
    if not integration.type.has_mapping:
        names = " or ".join(each.name for each in FORMATS if each.has_mapping)
        raise NotFoundError(f"Only integrations of the type {names} have a mapping.")
    if not integration_context(project).allows_several:
        message = "This instance's tier has no custom mappings."
        raise ForbiddenError(message)
    return integration


def _draft(body: AlertMappingBody, integration: IntegrationView) -> MappingDraft:
    sample = samples.read_sample(body.sample, nesting_limit=reading().nesting_limit)
    words = MappingRules(severity_words=integration.mapping.rules.severity_words)
    rules = words if body.rules is None else body.rules.rules
    return MappingDraft(sample=sample, mapping=samples.map_sample(body.mapping, sample, rules))


def _saved(project: ProjectView, integration_id: int) -> AlertMapping:
    integration = integration_of(project, integration_id)
    sample = _sample_of(integration)
    return AlertMapping.of(integration, sample, _never_resolves(integration, sample))


def _never_resolves(integration: IntegrationView, sample: Sample | None) -> str | None:
    if sample is None or not integration.has_mapping:
        return None
    flag = reading().automatic_fingerprint
    return never_resolves(integration.mapping, sample.payload, automatic_fingerprint=flag)


def _sample_of(integration: IntegrationView) -> Sample | None:
    """Return the saved sample, or None without one and for one above a limit lowered since."""
    try:
        draft = samples.saved_draft(integration, nesting_limit=reading().nesting_limit)
    except InvalidError:
        return None
    return draft.sample if draft else None
