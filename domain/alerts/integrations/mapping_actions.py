"""Actions that manage the mappings of integrations and recognize payloads."""

from collections.abc import Mapping
from dataclasses import replace

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
    MappedIntegration,
    MappingPreviewBody,
    RecognitionBody,
)
from domain.alerts.integrations.recognized_samples import Recognition, recognize_messages
from domain.alerts.integrations.samples import (
    MappingDraft,
    build_mapping,
    load_sample,
    parse_messages,
    parse_sample,
)
from domain.alerts.integrations.types import IntegrationView, IntegrationWithKey, NewIntegration
from domain.alerts.reading.mapping import FieldMapping
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
    reading = work.policy(ParserSettings)
    sample, never_resolves = load_sample(integration, nesting_limit=reading.nesting_limit), None
    if sample and integration.has_mapping:
        never_resolves = explain_missing_resolution(integration.mapping, sample.payload, reading)
    return AlertMapping.model_validate(
        {
            "sample": integration.sample,
            "mapping": integration.mapping.paths,
            "rules": integration.mapping.rules,
            "never_resolves": never_resolves,
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
    integration = get_mappable_integration(work, project, integration_id)
    draft = _build_mapping_draft(work, integration, body)
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
    mapping = FieldMapping(rules=_keep_only_words_and_labels(integration))
    _store_mapping(work, integration, mapping, sample=None)
    record_integration_change(work, project, integration, "mapping removed")


@read_action("alert_mappings.preview")
def preview_mapping(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: MappingPreviewBody
) -> AlertMappingPreview:
    """Preview the values that a mapping reads from its sample and from the latest deliveries."""
    integration = get_mappable_integration(work, project, integration_id)
    reading = work.policy(ParserSettings)
    draft = _build_mapping_draft(work, integration, body)
    _, messages = parse_messages(body.texts, nesting_limit=reading.nesting_limit)
    parser = MessageParser(
        format=integration.format, mapping=draft.mapping, now=work.now, reading=reading
    )
    compared = preview_deliveries(integration, draft.mapping, session=work.session, reading=reading)
    return AlertMappingPreview.model_validate(
        {
            **vars(parser.preview(messages)),
            **vars(compared),
            "values": draft.sample.values,
            "deliveries": compared.shown,
            "changed": compared.changed,
        }
    )


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
    """Recognize the tool that sends messages, and propose a type, mapping and severities."""
    del project  # The project is only used for the permission check.
    return build_recognition_resource(
        recognize_messages(
            body.texts, body.answers, now=work.now, reading=work.policy(ParserSettings)
        )
    )


def build_recognition_resource(found: Recognition) -> AlertRecognition:
    """Convert a recognized payload to a resource."""
    proposal = found.proposal
    return AlertRecognition.model_validate(
        {
            **vars(proposal),
            **vars(found.preview),
            "questions": found.questions,
            "type": proposal.format.name,
            "sample": found.sample.text,
            "mapping": proposal.mapping.paths,
            "rules": proposal.mapping.rules,
            "values": found.sample.values,
        }
    )


@action("alert_integrations.create")
def create_mapped_integration(
    work: UnitOfWork, project: ProjectView, new: MappedIntegration
) -> IntegrationWithKey:
    """Create an alert integration, with a mapping if a sample is given.

    Raise InvalidError, which names the invalid field.
    """
    made = create_integration(work, project, new)
    if new.mapping and new.sample is None:
        raise InvalidError("A mapping requires a sample.", field="sample")
    if new.sample is not None and (new.mapping or get_integration_type(made.type).has_mapping):
        body = AlertMappingBody(sample=new.sample, mapping=new.mapping, rules=new.rules)
        change_mapping(work, project, made.id, body)
        has_mapping = get_integration(work, project, made.id).has_mapping
        return made.model_copy(update={"has_mapping": has_mapping})
    return made


@action("alert_integrations.create")
def create_recognized_integration(
    work: UnitOfWork, project: ProjectView, new: NewIntegration, found: Recognition | None
) -> IntegrationWithKey:
    """Create an integration, with the mapping that is proposed for messages of its type."""
    made = create_integration(work, project, new)
    if found and found.proposal.format is get_integration_type(made.type):
        _store_proposal(work, project, made.id, found.proposal.mapping, found.sample.text)
    return made


@action("alert_integrations.create")
def create_integration_for_tool(
    work: UnitOfWork, project: ProjectView, known: KnownTool, name: str
) -> IntegrationWithKey:
    """Create an integration with the type, the mapping and the example message of a known tool."""
    body_format, tool = known
    new = NewIntegration(
        type=body_format.name,
        name=name.strip() or tool.name,
        accepts_key_in_url=tool.uses_key_in_url,
    )
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
    return replace(
        integration.mapping.rules, resolved_when=(), is_guess=False, dropped_when=(), joins={}
    )


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
    mapping = integration.mapping.with_rules(severity_words=checked)
    _store_mapping(work, integration, mapping, integration.sample)
