"""Actions that manage the mappings of integrations and recognize payloads."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime

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
    preview_deliveries,
)
from domain.alerts.integrations.mapping_questions import check_answers, count_open_questions
from domain.alerts.integrations.mapping_types import (
    AlertMapping,
    AlertMappingBody,
    AlertMappingPreview,
    AlertRecognition,
    MappedIntegration,
    RecognitionBody,
)
from domain.alerts.integrations.message_recognition import Recognition, recognize_messages
from domain.alerts.integrations.samples import (
    MappingDraft,
    MessageTexts,
    build_mapping,
    format_messages,
    get_saved_messages,
    list_message_values,
    load_draft,
    parse_messages,
    parse_sample,
)
from domain.alerts.integrations.types import IntegrationView, IntegrationWithKey, NewIntegration
from domain.alerts.parsing.mapping import FieldMapping
from domain.alerts.parsing.mapping_rules import MappingRules, validate_severity_words
from domain.alerts.parsing.pagerduty import hide_routing_key
from domain.alerts.parsing.text_conversion import format_indented_json
from domain.alerts.recognition.known_tools import KnownTool
from domain.alerts.tools.examples import build_example
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.projects.views import ProjectView


@read_action("alert_mappings.show")
def show_mapping(work: UnitOfWork, project: ProjectView, integration_id: int) -> AlertMapping:
    """Show the sample and the mapping of an alert integration."""
    integration = get_integration(work, project, integration_id)
    reading = work.policy(ParserSettings)
    draft, preview = None, None
    # Messages that exceed the current limits are not read.
    with suppress(InvalidError):
        saved = get_saved_messages(integration)
        draft = load_draft(saved, integration, nesting_limit=reading.nesting_limit)
        if draft and integration.has_mapping:
            preview = _build_parser(work, integration, draft.mapping).preview(draft.messages)
    return AlertMapping.model_validate(
        {
            **vars(integration),
            "mapping": integration.mapping.paths,
            "rules": integration.mapping.rules,
            "never_resolves": preview.never_resolves if preview else None,
            "resolves_seldom": preview.resolves_seldom if preview else None,
            "values": list_message_values(draft.messages) if draft else (),
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
    texts = format_messages(draft.sample, draft.messages)
    _store_mapping(work, integration, draft.mapping, texts)
    record_integration_change(work, project, integration, "mapping saved")


@action("alert_mappings.delete")
def delete_mapping(work: UnitOfWork, project: ProjectView, integration_id: int) -> None:
    """Delete the mapping of an alert integration and its sample messages.

    After that, each alert field is read from the payload key with the same name. Severity words and
    label names are not deleted.
    """
    integration = get_integration(work, project, integration_id)
    mapping = FieldMapping(rules=_keep_only_words_and_labels(integration))
    _store_mapping(work, integration, mapping, MessageTexts(sample=""))
    record_integration_change(work, project, integration, "mapping removed")


@read_action("alert_mappings.preview")
def preview_mapping(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: AlertMappingBody
) -> AlertMappingPreview:
    """Preview the values that a mapping reads from its sample and from the latest deliveries."""
    integration = get_mappable_integration(work, project, integration_id)
    reading = work.policy(ParserSettings)
    draft = _build_mapping_draft(work, integration, body)
    compared = preview_deliveries(integration, draft.mapping, session=work.session, reading=reading)
    with _name_parameters("sample_"):
        preview = _build_parser(work, integration, draft.mapping).preview(draft.messages)
    return AlertMappingPreview.model_validate(
        {
            **vars(preview),
            **vars(compared),
            "values": list_message_values(draft.messages),
            "deliveries": compared.displayed_comparisons,
            "changed": compared.changed_delivery_count,
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
    """Add severity words to an integration, or change the severities of existing words.

    Raise InvalidError if a word or a severity is not valid.
    """
    integration = get_receiving_integration(work, project, integration_id)
    known = integration.mapping.rules.severity_words
    save_severity_words(work, project, integration_id, {**known, **words})


@read_action("alert_recognition.recognize")
def recognize_payload(
    work: UnitOfWork, project: ProjectView, body: RecognitionBody
) -> AlertRecognition:
    """Identify the tool that sent the given messages, and propose a type and a mapping."""
    del project  # The project is only used for the permission check.
    reading = work.policy(ParserSettings)
    found = recognize_with_answers(body.texts, body.answers, now=work.now, reading=reading)
    return build_recognition_resource(found)


def recognize_with_answers(
    texts: MessageTexts, answers: Mapping[str, str], *, now: datetime, reading: ParserSettings
) -> Recognition:
    """Recognize messages for the API or the command line.

    Raise InvalidError, which names the parameter, if a message or an answer is not valid.
    """
    with _name_parameters("sample_"):
        found = recognize_messages(texts, answers, now=now, reading=reading)
    check_answers(answers, found.questions)
    return found


@contextmanager
def _name_parameters(prefix: str) -> Iterator[None]:
    """Add a prefix to the names of parameters in errors, except for the sample."""
    try:
        yield
    except InvalidError as error:
        if error.field in {"", "sample"}:
            raise
        name = f"{prefix}{error.field}"
        raise InvalidError(f"`{name}`: {error}", field=name) from error


def build_recognition_resource(found: Recognition) -> AlertRecognition:
    """Convert a recognized payload to a resource."""
    proposal = found.proposal
    return AlertRecognition.model_validate(
        {
            **vars(proposal),
            **vars(found.preview),
            "questions": found.questions,
            "type": proposal.format.name,
            **_map_texts_to_columns(found.texts),
            "mapping": proposal.mapping.paths,
            "rules": proposal.mapping.rules,
            "values": list_message_values(found.messages),
        }
    )


@action("alert_integrations.create")
def create_mapped_integration(
    work: UnitOfWork, project: ProjectView, new: MappedIntegration
) -> IntegrationWithKey:
    """Create an alert integration, with a mapping if a sample is given.

    Raise InvalidError, which names the field, if a value is not valid.
    """
    made = create_integration(work, project, new)
    has_parts = new.mapping or new.rules or new.sample_repeat or new.sample_recovery
    if has_parts and new.sample is None:
        message = "`sample` is missing. A mapping, rules and other messages require a sample."
        raise InvalidError(message, field="sample")
    if new.mapping and not get_integration_type(made.type).has_mapping:
        message = f"`mapping` is not possible for integrations of the type {made.type}."
        raise InvalidError(message, field="mapping")
    if new.sample is not None and (new.mapping or get_integration_type(made.type).has_mapping):
        names = ("sample", "sample_repeat", "sample_recovery", "mapping", "rules")
        body = AlertMappingBody.model_construct(**{name: getattr(new, name) for name in names})
        change_mapping(work, project, made.id, body)
        view = get_integration(work, project, made.id)
        changed = {
            "has_mapping": view.has_mapping,
            "open_questions": count_open_questions(work, view),
        }
        return made.model_copy(update=changed)
    return made


@action("alert_integrations.create")
def create_recognized_integration(
    work: UnitOfWork, project: ProjectView, new: NewIntegration, found: Recognition | None
) -> IntegrationWithKey:
    """Create an integration, and store the proposed mapping if it is for the same type."""
    made = create_integration(work, project, new)
    if found and found.proposal.format is get_integration_type(made.type):
        _store_proposal(work, project, made.id, found.proposal.mapping, found.texts)
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
        example = MessageTexts(sample=format_indented_json(build_example(tool)))
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
    """Return the mapping in a request.

    If the sample is the same as the saved sample, the saved messages are used for messages that are
    missing from the request.
    """
    saved = get_saved_messages(integration)
    if body.sample != saved.sample:
        saved = MessageTexts(sample=body.sample)
    given = {"repeat": body.sample_repeat, "recovery": body.sample_recovery}
    texts = replace(saved, **{name: each for name, each in given.items() if each is not None})
    limit = work.policy(ParserSettings).nesting_limit
    with _name_parameters("sample_"):
        _, messages = parse_messages(texts, nesting_limit=limit)
    sample = parse_sample(body.sample, nesting_limit=limit)
    with _name_parameters("rules."):
        rules = body.rules.rules if body.rules else _keep_only_words_and_labels(integration)
    mapping = build_mapping(body.mapping, messages, rules, integration.mapping)
    return MappingDraft(sample=sample, mapping=mapping, messages=messages)


def _build_parser(
    work: UnitOfWork, integration: IntegrationView, mapping: FieldMapping
) -> MessageParser:
    reading = work.policy(ParserSettings)
    return MessageParser(format=integration.format, mapping=mapping, now=work.now, reading=reading)


def _keep_only_words_and_labels(integration: IntegrationView) -> MappingRules:
    rules = integration.mapping.rules
    return MappingRules(
        severity_words=rules.severity_words,
        environment_labels=rules.environment_labels,
        service_labels=rules.service_labels,
    )


def _store_proposal(
    work: UnitOfWork,
    project: ProjectView,
    integration_id: int,
    mapping: FieldMapping,
    texts: MessageTexts,
) -> None:
    """Store a proposed mapping with its messages.

    If the mapping reads fields, only its severity words are stored in the Free tier.
    """
    integration = get_integration(work, project, integration_id)
    if can_customize_integrations(work) or not mapping.reads_fields:
        _store_mapping(work, integration, mapping, texts)
    else:
        _store_severity_words(work, integration, mapping.rules.severity_words)


def _store_mapping(
    work: UnitOfWork, integration: IntegrationView, mapping: FieldMapping, texts: MessageTexts
) -> None:
    row = get_integration_row(integration.id, session=work.session)
    for name, text in _map_texts_to_columns(texts).items():
        setattr(row, name, hide_routing_key(text.encode()).decode() if text else None)
    row.mapping = dict(mapping.stored) or None
    work.session.flush()


def _map_texts_to_columns(texts: MessageTexts) -> dict[str, str | None]:
    """Return messages by column name, with None for missing messages."""
    others = {f"sample_{name}": getattr(texts, name) or None for name in ("repeat", "recovery")}
    return {"sample": texts.sample, **others}


def _store_severity_words(
    work: UnitOfWork, integration: IntegrationView, words: Mapping[str, object]
) -> None:
    checked = validate_severity_words(words, field="severity_words")
    mapping = integration.mapping.with_rules(severity_words=checked)
    _store_mapping(work, integration, mapping, get_saved_messages(integration))
