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
)
from domain.alerts.integrations.mapping_preview import (
    explain_missing_resolution,
    preview_deliveries,
    preview_sample,
)
from domain.alerts.integrations.mapping_types import (
    AlertMapping,
    AlertMappingBody,
    AlertMappingPreview,
    AlertRecognition,
    RecognitionBody,
)
from domain.alerts.integrations.recognized_samples import (
    MessageTexts,
    Recognition,
    recognize_messages,
)
from domain.alerts.integrations.samples import (
    MappingDraft,
    Sample,
    build_mapping,
    load_saved_draft,
    parse_sample,
)
from domain.alerts.integrations.types import IntegrationView, IntegrationWithKey, NewIntegration
from domain.alerts.reading.mapping import FieldMapping, load_mapping
from domain.alerts.reading.mapping_rules import MappingRules, validate_severity_words
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError
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
        }
    )


@action("alert_mappings.change")
def change_mapping(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: AlertMappingBody
) -> AlertMapping:
    """Save a sample and a mapping for new deliveries."""
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
    work: UnitOfWork, project: ProjectView, integration_id: int, body: AlertMappingBody
) -> AlertMappingPreview:
    """Preview the values that a mapping reads from its sample and from the latest deliveries."""
    integration, reading = (
        get_mappable_integration(work, project, integration_id),
        work.policy(ParserSettings),
    )
    draft = _build_mapping_draft(work, integration, body)
    mappings = (integration.mapping, draft.mapping)
    read = preview_sample(draft, integration.format, now=work.now, reading=reading)
    compared = preview_deliveries(integration.id, mappings, session=work.session, reading=reading)
    found = {
        "values": draft.sample.values,
        "deliveries": compared.comparisons,
        "changed": compared.changed,
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
def add_severity_word(
    work: UnitOfWork, project: ProjectView, integration_id: int, word: str, severity: str
) -> None:
    """Add a severity word to an integration, or change the severity of the word.

    Raise InvalidError if the word or the severity is not valid.
    """
    integration = get_receiving_integration(work, project, integration_id)
    known = integration.mapping.rules.severity_words
    _store_severity_words(work, integration, {**known, word: severity})
    record_integration_change(work, project, integration, "severity word added")


@read_action("alert_recognition.recognize")
def recognize_payload(
    work: UnitOfWork, project: ProjectView, body: RecognitionBody
) -> AlertRecognition:
    """Recognize the tool that sends messages, and propose type, mapping and severities."""
    del project  # The project is only used for the permission check.
    return build_recognition_resource(
        recognize_messages(
            MessageTexts(
                sample=body.sample, repeat=body.repeat or "", recovery=body.recovery or ""
            ),
            now=work.now,
            reading=work.policy(ParserSettings),
        )
    )


def build_recognition_resource(found: Recognition) -> AlertRecognition:
    """Convert a recognized payload to a resource."""
    proposal = found.proposal
    return AlertRecognition.model_validate(
        {
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
            "repeat": found.repeat,
            "recovery": found.recovery,
        }
    )


@action("alert_integrations.create")
def create_recognized_integration(
    work: UnitOfWork, project: ProjectView, new: NewIntegration, texts: MessageTexts
) -> IntegrationWithKey:
    """Create an integration with the mapping that is proposed for the messages of an alert."""
    made = create_integration(work, project, new)
    if not texts.sample or not get_integration_type(made.type).has_mapping:
        return made
    found = recognize_messages(texts, now=work.now, reading=work.policy(ParserSettings))
    mapping, integration = found.proposal.mapping, get_integration(work, project, made.id)
    if mapping.reads_fields and can_customize_integrations(work):
        _store_mapping(work, integration, mapping, found.sample.text)
    elif mapping.rules.severity_words:
        _store_severity_words(work, integration, mapping.rules.severity_words)
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
    return MappingDraft(sample=sample, mapping=mapping)


def _keep_only_words_and_labels(integration: IntegrationView) -> MappingRules:
    return replace(integration.mapping.rules, resolved_when=(), dropped_when=(), joins={})


def _store_mapping(
    work: UnitOfWork, integration: IntegrationView, mapping: FieldMapping, sample: str | None
) -> None:
    row = get_integration_row(integration.id, session=work.session)
    row.sample, row.mapping = sample, dict(mapping.stored) or None
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
        draft = load_saved_draft(
            integration, nesting_limit=work.policy(ParserSettings).nesting_limit
        )
    except InvalidError:
        return None
    return draft.sample if draft else None
