"""Samples of a sender's payload, and the mapping of their values to the fields of an alert."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from domain.alerts.integrations.proposals import propose
from domain.alerts.integrations.rule_choices import (
    NO_CHOICES,
    RuleChoices,
    choices_of_rules,
    read_rule_choices,
)
from domain.alerts.integrations.sample_tree import SampleNode, tree_of
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.reading.body import read_object
from domain.alerts.reading.incoming import Severity, UnreadableBody
from domain.alerts.reading.mapping import (
    UNMAPPED,
    AlertField,
    FieldMapping,
    SampleValue,
    json_type_of,
    values_of,
)
from domain.alerts.reading.mapping_rules import NO_RULES, MappingRules
from domain.alerts.reading.paths import Path, read_path, resolve, shown, written
from domain.alerts.reading.text import canonical_json, excerpt
from domain.errors import InvalidError, InvalidParametersError, InvalidValue

#: In bytes of UTF-8. A sample shows one alert; receivers accept much larger bodies.
LARGEST_SAMPLE = 64 * 1024

#: The label of each mapped field on the page.
FIELD_LABELS: Mapping[AlertField, str] = {
    AlertField.TITLE: "Title",
    AlertField.DESCRIPTION: "Description",
    AlertField.START_TIME: "Start time",
    AlertField.END_TIME: "End time (resolves the alert)",
    AlertField.SERVICE: "Service",
    AlertField.MONITORING_TOOL: "Monitoring tool",
    AlertField.HOSTS: "Hosts",
    AlertField.SEVERITY: "Severity",
    AlertField.FINGERPRINT: "Fingerprint (groups reports)",
    AlertField.ENVIRONMENT: "Environment",
    AlertField.RUNBOOK: "Runbook",
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A payload from a sender, parsed."""

    text: str
    payload: Mapping[str, object]
    values: tuple[SampleValue, ...]

    @property
    def tree(self) -> tuple[SampleNode, ...]:
        """The fields as a tree, nested as in the payload."""
        return tree_of(self.payload)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: equal for samples that differ only in their layout."""
        return sha256(canonical_json(self.payload)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class FieldChoice:
    """A row of the mapping table: a field and the paths that it is read from."""

    field: AlertField
    #: Paths as forms carry them, empty where nothing is chosen.
    first: str
    fallback: str

    @property
    def label(self) -> str:
        """The label of the field."""
        return FIELD_LABELS[self.field]


def read_sample(text: str, *, nesting_limit: int) -> Sample:
    """Parse a sample; raise InvalidError if it is too large or no JSON object."""
    body = text.encode("utf-8", "surrogatepass")
    if len(body) > LARGEST_SAMPLE:
        message = f"A sample has at most {LARGEST_SAMPLE // 1024} KiB: leave out what repeats."
        raise InvalidError(message, field="sample")
    try:
        payload = read_object(body, nesting_limit=nesting_limit)
    except UnreadableBody as error:
        raise InvalidError(str(error).replace("body", "sample"), field="sample") from error
    return Sample(text=text, payload=payload, values=values_of(payload))


def choices_of(mapping: FieldMapping) -> tuple[FieldChoice, ...]:
    """Return the rows of the mapping table for a mapping, one for each field."""
    rows = []
    for field in AlertField:
        first, fallback, *_ = (*map(written, mapping.paths.get(field, ())), "", "")
        rows.append(FieldChoice(field=field, first=first, fallback=fallback))
    return tuple(rows)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a form says: for each field its path and the fallback, blank for none; and rules."""

    paths: Mapping[AlertField, Sequence[str]]
    rules: RuleChoices = NO_CHOICES


def read_choices(chosen: Chosen, sample: Sample, saved: FieldMapping = UNMAPPED) -> FieldMapping:
    """Return the chosen mapping; raise InvalidError if a path is neither in the sample nor saved.

    `saved` may be what was proposed for a new sample. The words for severities are its own.
    """
    offered = frozenset(value.written for value in (*sample.values, *missing_of(saved, sample)))
    rules = read_rule_choices(chosen.rules, offered=offered)
    return FieldMapping(
        _chosen_paths(chosen.paths, offered),
        replace(rules, severity_words=saved.rules.severity_words),
    )


def missing_of(mapping: FieldMapping, sample: Sample) -> Iterator[SampleValue]:
    """Return the values that a mapping reads and the sample does not offer, each once."""
    offered = {value.path for value in sample.values}
    for path in dict.fromkeys(mapping.all_paths):
        if path not in offered:
            value = resolve(sample.payload, path)
            yield SampleValue(path=path, json_type=json_type_of(value), example=excerpt(value))


def _chosen_paths(
    chosen: Mapping[AlertField, Sequence[str]], offered: frozenset[str]
) -> Mapping[AlertField, tuple[Path, ...]]:
    paths: dict[AlertField, tuple[Path, ...]] = {}
    for field, texts in chosen.items():
        named = [text for text in dict.fromkeys(texts) if text]
        if not offered.issuperset(named):
            message = f"{FIELD_LABELS[field]}: choose a field of the sample."
            raise InvalidError(message, field="mapping")
        if named:
            paths[field] = tuple(map(read_path, named))
    return paths


def map_sample(
    given: Mapping[AlertField, Sequence[Path]], sample: Sample, rules: MappingRules = NO_RULES
) -> FieldMapping:
    """Return the mapping with these rules and paths, the second path of a field its fallback.

    The path of a rule may be one that the sample does not have: what tells that an alert is over,
    or no alert, is often in other payloads alone.

    Raise InvalidParametersError with every path that is no value of the sample.
    """
    offered = {value.path for value in sample.values}
    problems = [
        InvalidValue(f"mapping.{field}", f"names {shown(path)}, which the sample does not have")
        for field, paths in given.items()
        for path in paths
        if path not in offered
    ]
    if problems:
        raise InvalidParametersError(problems)
    return FieldMapping({field: tuple(dict.fromkeys(given[field])) for field in given}, rules)


@dataclass(frozen=True, kw_only=True)
class MappingDraft:
    """A mapping that is not saved yet, with its sample."""

    sample: Sample
    mapping: FieldMapping
    #: The sample differs from the one that the choices were made for, so the mapping is empty.
    is_new_sample: bool = False

    @property
    def choices(self) -> tuple[FieldChoice, ...]:
        """The rows of the mapping table."""
        return choices_of(self.mapping)

    @property
    def rule_choices(self) -> RuleChoices:
        """The rows of the tables of rules."""
        return choices_of_rules(self.mapping.rules)

    @property
    def missing(self) -> tuple[SampleValue, ...]:
        """The values that the mapping reads and the sample does not have."""
        return tuple(missing_of(self.mapping, self.sample))


def saved_draft(integration: IntegrationView, *, nesting_limit: int) -> MappingDraft | None:
    """Return the saved sample and mapping, or None if there are none.

    Raise InvalidError if the sample exceeds a limit that was lowered since.
    """
    if not integration.sample:
        return None
    sample = read_sample(integration.sample, nesting_limit=nesting_limit)
    return MappingDraft(sample=sample, mapping=integration.mapping)


def read_draft(
    text: str, chosen: Chosen, integration: IntegrationView, *, mapped_for: str, nesting_limit: int
) -> MappingDraft:
    """Return the draft that was posted; raise InvalidError naming the field.

    `mapped_for` is the digest of the sample that the choices were made for. If the sample is a
    different one, the choices are ignored, since their paths may be missing or have another
    meaning; the draft proposes a mapping for it.
    """
    sample, saved = read_sample(text, nesting_limit=nesting_limit), integration.mapping
    proposed = proposed_draft(sample, saved.rules.severity_words)
    if sample.digest != mapped_for:
        return proposed
    if not _is_saved(sample, integration, nesting_limit=nesting_limit):
        saved = proposed.mapping
    return MappingDraft(sample=sample, mapping=read_choices(chosen, sample, saved))


def _is_saved(sample: Sample, integration: IntegrationView, *, nesting_limit: int) -> bool:
    """Return whether a sample is the one of the saved mapping, whatever its layout."""
    if not integration.sample:
        return False
    try:
        return read_sample(integration.sample, nesting_limit=nesting_limit).digest == sample.digest
    except InvalidError:
        return False


def proposed_draft(sample: Sample, words: Mapping[str, Severity]) -> MappingDraft:
    """Return the draft of a new sample, with what is proposed for it."""
    mapping = propose(sample.payload).mapping
    rules = replace(mapping.rules, severity_words={**mapping.rules.severity_words, **words})
    return MappingDraft(
        sample=sample, mapping=FieldMapping(mapping.paths, rules), is_new_sample=True
    )
