"""Actions that manage the mappings of integrations and recognize payloads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS, get_integration_type
from domain.alerts.integrations.actions import create_integration, record_integration_change
from domain.alerts.integrations.integrations import (
    can_customize_integrations,
    get_integration,
    get_integration_row,
    get_receiving_integration,
    lock_integrations,
)
from domain.alerts.integrations.mapping_preview import (
    MessageParser,
    explain_missing_resolution,
    preview_deliveries,
)
from domain.alerts.integrations.mapping_types import (
    AlertMapping,
    AlertMappingBody,
    AlertMappingPreview,
    AlertRecognition,
    MappingPreviewBody,
    RecognitionBody,
)
from domain.alerts.integrations.recognized_samples import Recognition, recognize_messages
from domain.alerts.integrations.samples import (
    MappingDraft,
    MessageTexts,
    Sample,
    build_mapping,
    parse_messages,
    parse_sample,
)
from domain.alerts.integrations.types import IntegrationView, IntegrationWithKey, NewIntegration
from domain.alerts.reading.mapping import FieldMapping, load_mapping
from domain.alerts.reading.mapping_rules import MappingRules, validate_severity_words
from domain.alerts.reading.pagerduty import hide_routing_key
from domain.alerts.reading.text import format_indented_json
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.tools import KnownTool
from domain.alerts.tools.examples import build_example
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.projects.views import ProjectView


@read_action("alert_mappings.show")
def show_mapping(work: UnitOfWork, project: ProjectView, integration_id: int) -> AlertMapping:
    """Show the sample and the mapping of an alert integration."""
    integration = get_integration(work, project, integration_id)
    sample = _load_sample(work, integration)
    return AlertMapping.model_validate(
        {
            "sample": integration.sample,
            "mapping": integration.mapping.paths,
            "rules": integration.mapping.rules,
            "never_resolves": _explain_missing_resolution_of_saved(work, integration, sample),
            "values": sample.values if sample else (),
            "revision": integration.mapping_revision,
        }
    )


@action("alert_mappings.change")
def change_mapping(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: AlertMappingBody
) -> AlertMapping:
    """Save a sample and a mapping for new deliveries.

    Raise ConflictError if the mapping has changed since the given revision.
    """
    if body.revision is not None:
        lock_integrations(project.id, session=work.session)
        if body.revision != get_integration(work, project, integration_id).mapping_revision:
            message = "The mapping has changed in the meantime. Check the current mapping first."
            raise ConflictError(message, field="revision")
    draft = _build_mapping_draft(
        work, get_mappable_integration(work, project, integration_id), body
    )
    save_mapping_draft(work, project, integration_id, draft)
    return show_mapping(work, project, integration_id)


@action("alert_mappings.change")
def save_mapping_draft(
    work: UnitOfWork, project: ProjectView, integration_id: int, draft: MappingDraft
) -> None:
    """Save a draft as the mapping for new deliveries."""
    integration = get_mappable_integration(work, project, integration_id)
    _store_mapping(work, integration, draft.mapping, draft.sample.text)
    record_integration_change(work, project, integration, "mapping saved")


@action("alert_mappings.delete")
def delete_mapping(work: UnitOfWork, project: ProjectView, integration_id: int) -> None:
    """Delete the sample and the mapping of an alert integration.

    Alert fields are then read from the keys with the same names. Severity words and label names are
    not deleted.
    """
    integration = get_integration(work, project, integration_id)
    _store_mapping(
        work, integration, FieldMapping(rules=_keep_only_words_and_labels(integration)), None
    )
    record_integration_change(work, project, integration, "mapping removed")


@read_action("alert_mappings.preview")
def preview_mapping(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: MappingPreviewBody
) -> AlertMappingPreview:
    """Preview the values that a mapping reads from its sample and from the latest deliveries."""
    integration, reading = (
        get_mappable_integration(work, project, integration_id),
        work.policy(ParserSettings),
    )
    draft = _build_mapping_draft(work, integration, body)
    _, messages = parse_messages(body.texts, nesting_limit=reading.nesting_limit)
    parser = MessageParser(
        format=integration.format, mapping=draft.mapping, now=work.now, reading=reading
    )
    read, mappings = parser.preview(messages), (integration.mapping, draft.mapping)
    compared = preview_deliveries(integration.id, mappings, session=work.session, reading=reading)
    found = {
        "values": draft.sample.values,
        "deliveries": compared.shown,
        "changed": compared.changed,
        "before": compared.before,
        "after": compared.after,
    }
    return AlertMappingPreview.model_validate({**vars(read), **found})


@action("alert_mappings.change")
def save_severity_words(
    work: UnitOfWork, project: ProjectView, integration_id: int, words: Mapping[str, object]
) -> None:
    """Replace the severity words of an integration.

    Raise InvalidError if a word or a severity is not valid.
    """
    integration = get_receiving_integration(work, project, integration_id)
    _store_severity_words(work, integration, words)
    record_integration_change(work, project, integration, "severity words saved")


@action("alert_mappings.change")
def add_severity_words(
    work: UnitOfWork, project: ProjectView, integration_id: int, words: Mapping[str, object]
) -> None:
    """Add severity words to an integration, or change the severities of these words.

    Raise InvalidError if a word or a severity is not valid.
    """
    integration = get_receiving_integration(work, project, integration_id)
    known = integration.mapping.rules.severity_words
    save_severity_words(work, project, integration_id, {**known, **words})


@read_action("alert_recognition.recognize")
def recognize_payload(
    work: UnitOfWork, project: ProjectView, body: RecognitionBody
) -> AlertRecognition:
    """Recognize the tool that sends messages, and propose type, mapping and severities."""
    del project  # The project is only used for the permission check.
    return build_recognition_resource(
        recognize_messages(body.texts, now=work.now, reading=work.policy(ParserSettings))
    )


def build_recognition_resource(found: Recognition) -> AlertRecognition:
    """Convert a recognized payload to a resource."""
    return AlertRecognition.model_validate(list_recognition_values(found))


def list_recognition_values(found: Recognition) -> dict[str, Any]:
    """Return the values of a recognized payload by their names in resources."""
    proposal = found.proposal
    return {
        **vars(found.preview),
        "tool": proposal.tool,
        "type": proposal.format.name,
        "hint": proposal.hint,
        "sample": found.sample.text,
        "mapping": proposal.mapping.paths,
        "rules": proposal.mapping.rules,
        "values": found.sample.values,
        "findings": [vars(each) for each in proposal.findings],
        "questions": proposal.questions,
    }


@action("alert_integrations.create")
def create_recognized_integration(
    work: UnitOfWork, project: ProjectView, new: NewIntegration, texts: MessageTexts
) -> IntegrationWithKey:
    """Create an integration with the mapping that is proposed for the messages of an alert."""
    made = create_integration(work, project, new)
    if texts.sample and made.url:
        found = recognize_messages(texts, now=work.now, reading=work.policy(ParserSettings))
        if found.proposal.format is get_integration_type(made.type):
            _store_proposal(work, project, made.id, found.proposal.mapping, found.sample.text)
    return made


@action("alert_integrations.create")
def create_integration_for_tool(
    work: UnitOfWork, project: ProjectView, known: KnownTool, name: str
) -> IntegrationWithKey:
    """Create an integration with the type, the mapping and the example message of a known tool."""
    body_format, tool = known
    new = NewIntegration(type=body_format.name, name=name.strip() or tool.name)
    made = create_integration(work, project, new)
    if tool.example or tool.mapping.reads_fields:
        example = format_indented_json(build_example(tool))
        _store_proposal(work, project, made.id, tool.mapping, example)
    return made


def get_mappable_integration(
    work: UnitOfWork, project: ProjectView, integration_id: int
) -> IntegrationView:
    """Return an integration that can have a mapping.

    Raise NotFoundError if the integration cannot have a mapping, and ForbiddenError if the
    instance's tier does not allow custom mappings.
    """
    integration = get_integration(work, project, integration_id)
    if not integration.type.has_mapping:
        names = " or ".join(each.name for each in FORMATS if each.has_mapping)
        raise NotFoundError(f"Only integrations of the type {names} can have a mapping.")
    if not can_customize_integrations(work):
        raise ForbiddenError("The tier of this instance does not include custom mappings.")
    return integration


def _build_mapping_draft(
    work: UnitOfWork, integration: IntegrationView, body: AlertMappingBody
) -> MappingDraft:
    sample = parse_sample(body.sample, nesting_limit=work.policy(ParserSettings).nesting_limit)
    rules = _keep_only_words_and_labels(integration) if body.rules is None else body.rules.rules
    mapping = build_mapping(body.mapping, sample, rules, integration.mapping)
    return MappingDraft(sample=sample, mapping=mapping, messages=Messages(firing=sample.payload))


def _keep_only_words_and_labels(integration: IntegrationView) -> MappingRules:
    return replace(integration.mapping.rules, resolved_when=(), dropped_when=(), joins={})


def _store_proposal(
    work: UnitOfWork, project: ProjectView, integration_id: int, mapping: FieldMapping, sample: str
) -> None:
    """Store a proposed mapping and its sample, or only severity words in tiers without mappings."""
    integration = get_integration(work, project, integration_id)
    if can_customize_integrations(work) or not mapping.reads_fields:
        _store_mapping(work, integration, mapping, sample)
    else:
        _store_severity_words(work, integration, mapping.rules.severity_words)


def _store_mapping(
    work: UnitOfWork, integration: IntegrationView, mapping: FieldMapping, sample: str | None
) -> None:
    row = get_integration_row(integration.id, session=work.session)
    row.sample = hide_routing_key(sample.encode()).decode() if sample else None
    row.mapping = dict(mapping.stored) or None
    work.session.flush()


def _store_severity_words(
    work: UnitOfWork, integration: IntegrationView, words: Mapping[str, object]
) -> None:
    checked = validate_severity_words(words, field="severity_words")
    row = get_integration_row(integration.id, session=work.session)
    mapping = load_mapping(row.mapping)
    rules = replace(mapping.rules, severity_words=checked)
    row.mapping = dict(FieldMapping(mapping.paths, rules).stored) or None
    work.session.flush()


def _explain_missing_resolution_of_saved(
    work: UnitOfWork, integration: IntegrationView, sample: Sample | None
) -> str | None:
    if sample is None or not integration.has_mapping:
        return None
    flag = work.policy(ParserSettings).automatic_fingerprint
    return explain_missing_resolution(
        integration.mapping, sample.payload, automatic_fingerprint=flag
    )


def _load_sample(work: UnitOfWork, integration: IntegrationView) -> Sample | None:
    """Return the saved sample, or None if no sample is saved or it exceeds the current limits."""
    try:
        limit = work.policy(ParserSettings).nesting_limit
        return parse_sample(integration.sample, nesting_limit=limit) if integration.sample else None
    except InvalidError:
        return None
