"""Sample payloads from senders, and the mappings that are proposed or chosen for samples."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from domain.alerts.integrations.types import IntegrationView
from domain.alerts.reading.body import parse_body_object
from domain.alerts.reading.incoming import Severity, UnreadableBodyError
from domain.alerts.reading.mapping import (
    NO_FIELD_MAPPING,
    AlertField,
    FieldMapping,
    SampleValue,
    get_json_type,
    list_sample_values,
)
from domain.alerts.reading.mapping_rules import (
    MAX_RULES_PER_KIND,
    NO_RULES,
    MappingRules,
    Operator,
    PayloadCondition,
    ValueJoin,
    validate_payload_condition,
    validate_value_join,
)
from domain.alerts.reading.paths import (
    PayloadPath,
    find_value,
    format_path,
    parse_path,
    serialize_path,
)
from domain.alerts.reading.text import format_canonical_json, format_excerpt
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.tools import propose_mapping
from domain.core.errors import InvalidError, InvalidParametersError, InvalidValue

#: Maximum number of fields in the tree of a sample.
MAX_TREE_NODES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleNode:
    """A field of a sample with its nested fields."""

    #: Key of the field, or its array index in brackets, such as `[0]`.
    name: str
    #: JSON type: string, number, boolean, null, array or object.
    json_type: str
    #: First characters of the value as JSON, or the number of items in an array or object.
    gist: str
    branches: tuple["SampleNode", ...]


def build_sample_tree(payload: Mapping[str, object]) -> tuple[SampleNode, ...]:
    """Return the tree of a sample in its original order, with at most MAX_TREE_NODES fields."""
    return _build_branches(payload, iter(range(MAX_TREE_NODES)))


def _build_branches(value: object, room: Iterator[int]) -> tuple[SampleNode, ...]:
    found = []
    for name, child in _list_children(value):
        if next(room, None) is None:
            break
        found.append(
            SampleNode(
                name=name,
                json_type=get_json_type(child),
                gist=_summarize_value(child),
                branches=_build_branches(child, room),
            )
        )
    return tuple(found)


def _list_children(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from ((f"[{position}]", child) for position, child in enumerate(value))


def _summarize_value(value: object) -> str:
    match value:
        case dict() | list():
            if not value:
                return "empty"
            return "1 item" if len(value) == 1 else f"{len(value)} items"
        case str():
            return format_excerpt(value)
    return format_excerpt(value)[1:-1]


#: Fields to which other values can be appended.
JOINABLE_FIELDS = (AlertField.TITLE, AlertField.FINGERPRINT)
#: Minimum number of choices for appended values in a form.
_OFFERED_JOIN_COUNT = 2


@dataclass(frozen=True, kw_only=True)
class ConditionChoice:
    """A row in a form's table of rules. Rows without a field are ignored."""

    #: Path of the field, as written by `serialize_path`.
    path: str = ""
    operator: str = Operator.IS.value
    #: Words, separated by commas.
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleChoices:
    """All rules that are chosen in a form."""

    joins: Mapping[AlertField, Sequence[str]] = dataclasses.field(default_factory=dict)
    #: Separator between the parts of a title.
    separator: str = ": "
    resolved_when: Sequence[ConditionChoice] = ()
    dropped_when: Sequence[ConditionChoice] = ()


NO_CHOICES = RuleChoices()


def build_rule_choices(rules: MappingRules) -> RuleChoices:
    """Return the form rows for rules, with an additional empty row in each table."""
    title = rules.joins.get(AlertField.TITLE)
    return RuleChoices(
        joins={name: _build_join_choices(rules.joins.get(name)) for name in JOINABLE_FIELDS},
        separator=title.separator if title else NO_CHOICES.separator,
        resolved_when=_build_condition_choices(rules.resolved_when),
        dropped_when=_build_condition_choices(rules.dropped_when),
    )


def _build_join_choices(join: ValueJoin | None) -> Sequence[str]:
    chosen = [serialize_path(path) for path in join.paths] if join else []
    return chosen + [""] * max(_OFFERED_JOIN_COUNT - len(chosen), 1 if not chosen else 0)


def _build_condition_choices(conditions: Sequence[PayloadCondition]) -> Sequence[ConditionChoice]:
    rows = [
        ConditionChoice(
            path=serialize_path(each.path),
            operator=each.operator.value,
            words=", ".join(each.words),
        )
        for each in conditions
    ]
    return [*rows, ConditionChoice()] if len(rows) < MAX_RULES_PER_KIND else rows


def parse_rule_choices(chosen: RuleChoices, *, offered: frozenset[str]) -> MappingRules:
    """Convert the choices in a form to rules.

    Raise InvalidError if a choice is not valid, or if its path is not among the offered paths.
    """
    joins = {
        name.value: validate_value_join(paths, chosen.separator, field="mapping")
        for name, texts in chosen.joins.items()
        if (
            paths := tuple(
                _parse_offered_path(text, offered) for text in dict.fromkeys(texts) if text
            )
        )
    }
    return MappingRules(
        resolved_when=tuple(_parse_conditions(chosen.resolved_when, offered)),
        dropped_when=tuple(_parse_conditions(chosen.dropped_when, offered)),
        joins=joins,
    )


def _parse_offered_path(text: str, offered: frozenset[str]) -> PayloadPath:
    if text not in offered:
        raise InvalidError("Choose a field of the sample for each rule.", field="mapping")
    return parse_path(text)


def _parse_conditions(
    rows: Sequence[ConditionChoice], offered: frozenset[str]
) -> Iterator[PayloadCondition]:
    if len(rows) > MAX_RULES_PER_KIND:
        message = f"A mapping can have at most {MAX_RULES_PER_KIND} rules of each kind."
        raise InvalidError(message, field="mapping")
    for row in rows:
        words = [word for part in row.words.split(",") if (word := part.strip())]
        if not row.path and words:
            message = f'Choose the field to compare with "{row.words.strip()}".'
            raise InvalidError(message, field="mapping")
        if row.path:
            path = _parse_offered_path(row.path, offered)
            yield validate_payload_condition(path, row.operator, words, field="mapping")


#: Maximum size of a sample in bytes. It shows one alert; receivers accept much larger bodies.
MAX_SAMPLE_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A parsed sample payload."""

    text: str
    payload: Mapping[str, object]
    values: tuple[SampleValue, ...]

    @property
    def tree(self) -> tuple[SampleNode, ...]:
        """Fields of the sample as a tree."""
        return build_sample_tree(self.payload)

    @property
    def digest(self) -> str:
        """SHA-256 hash of the canonical JSON, which does not depend on formatting."""
        return sha256(format_canonical_json(self.payload)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class FieldChoice:
    """A row of the mapping table: a field and the paths that it is read from."""

    field: AlertField
    #: Paths as written by `serialize_path`. They are empty if nothing is chosen.
    first: str
    fallback: str

    @property
    def label(self) -> str:
        """Label of the field."""
        return self.field.label


def parse_sample(text: str, *, nesting_limit: int) -> Sample:
    """Parse a sample.

    Raise InvalidError if the sample is too large or not a JSON object.
    """
    body = text.encode("utf-8", "surrogatepass")
    if len(body) > MAX_SAMPLE_BYTES:
        message = (
            f"A sample can have at most {MAX_SAMPLE_BYTES // 1024} KiB. Remove repeated parts."
        )
        raise InvalidError(message, field="sample")
    try:
        payload = parse_body_object(body, nesting_limit=nesting_limit)
    except UnreadableBodyError as error:
        raise InvalidError(str(error).replace("body", "sample"), field="sample") from error
    return Sample(text=text, payload=payload, values=list_sample_values(payload))


def build_field_choices(mapping: FieldMapping) -> tuple[FieldChoice, ...]:
    """Return the rows of the mapping table, one for each field."""
    rows = []
    for field in AlertField:
        first, fallback, *_ = (*map(serialize_path, mapping.paths.get(field, ())), "", "")
        rows.append(FieldChoice(field=field, first=first, fallback=fallback))
    return tuple(rows)


@dataclass(frozen=True, kw_only=True)
class MappingChoices:
    """The choices in a form: the path and the fallback path of each field, and rules."""

    paths: Mapping[AlertField, Sequence[str]]
    rules: RuleChoices = NO_CHOICES


def parse_mapping_choices(
    chosen: MappingChoices, sample: Sample, saved: FieldMapping = NO_FIELD_MAPPING
) -> FieldMapping:
    """Convert the choices in a form to a mapping.

    `saved` can also be a mapping that was proposed for a new sample. The severity words of `saved`
    are retained. Raise InvalidError if a path is neither in the sample nor in `saved`.
    """
    offered = frozenset(
        value.written for value in (*sample.values, *find_missing_values(saved, sample))
    )
    rules = parse_rule_choices(chosen.rules, offered=offered)
    return FieldMapping(
        _parse_chosen_paths(chosen.paths, offered),
        replace(rules, severity_words=saved.rules.severity_words),
    )


def find_missing_values(mapping: FieldMapping, sample: Sample) -> Iterator[SampleValue]:
    """Yield each value that a mapping reads but that is missing from the sample."""
    offered = {value.path for value in sample.values}
    for path in dict.fromkeys(mapping.all_paths):
        if path not in offered:
            value = find_value(sample.payload, path)
            yield SampleValue(
                path=path, json_type=get_json_type(value), example=format_excerpt(value)
            )


def _parse_chosen_paths(
    chosen: Mapping[AlertField, Sequence[str]], offered: frozenset[str]
) -> Mapping[AlertField, tuple[PayloadPath, ...]]:
    paths: dict[AlertField, tuple[PayloadPath, ...]] = {}
    for field, texts in chosen.items():
        named = [text for text in dict.fromkeys(texts) if text]
        if not offered.issuperset(named):
            raise InvalidError(f"{field.label}: choose a field of the sample.", field="mapping")
        if named:
            paths[field] = tuple(map(parse_path, named))
    return paths


def build_mapping(
    given: Mapping[AlertField, Sequence[PayloadPath]],
    sample: Sample,
    rules: MappingRules = NO_RULES,
    saved: FieldMapping = NO_FIELD_MAPPING,
) -> FieldMapping:
    """Return a mapping with the given rules and paths. The second path of a field is its fallback.

    A path must be in the sample, the saved mapping, or the mapping proposed for the sample. Saved
    and proposed mappings may read values that only other payloads from the sender contain.

    Paths in rules are not checked, because the values that resolve or drop an alert are often
    missing from the sample.

    Raise InvalidParametersError, which lists all invalid paths.
    """
    proposed = propose_mapping(Messages(firing=sample.payload)).mapping
    offered = {value.path for value in sample.values}
    offered.update(saved.all_paths, proposed.all_paths)
    problems = [
        InvalidValue(
            f"mapping.{field}", f"contains {format_path(path)}, which is not in the sample"
        )
        for field, paths in given.items()
        for path in paths
        if path not in offered
    ]
    if problems:
        raise InvalidParametersError(problems)
    return FieldMapping({field: tuple(dict.fromkeys(given[field])) for field in given}, rules)


@dataclass(frozen=True, kw_only=True)
class MappingDraft:
    """An unsaved mapping with its sample."""

    sample: Sample
    mapping: FieldMapping
    #: True if the sample differs from the sample for which the choices were made. The mapping is
    #: then the proposed mapping.
    is_new_sample: bool = False

    @property
    def choices(self) -> tuple[FieldChoice, ...]:
        """Rows of the mapping table."""
        return build_field_choices(self.mapping)

    @property
    def rule_choices(self) -> RuleChoices:
        """Rows of the rule tables."""
        return build_rule_choices(self.mapping.rules)

    @property
    def missing(self) -> tuple[SampleValue, ...]:
        """Values that the mapping reads but that are missing from the sample."""
        return tuple(find_missing_values(self.mapping, self.sample))


def load_saved_draft(integration: IntegrationView, *, nesting_limit: int) -> MappingDraft | None:
    """Return the saved sample and mapping, or None if no sample is saved.

    Raise InvalidError if the sample exceeds a limit that was lowered since it was saved.
    """
    if not integration.sample:
        return None
    sample = parse_sample(integration.sample, nesting_limit=nesting_limit)
    return MappingDraft(sample=sample, mapping=integration.mapping)


def parse_draft(
    text: str,
    chosen: MappingChoices,
    integration: IntegrationView,
    *,
    mapped_for: str,
    nesting_limit: int,
) -> MappingDraft:
    """Parse the draft in a submitted form.

    `mapped_for` is the digest of the sample that the choices were made for. For any other sample,
    the choices are ignored, since their paths may be missing or have another meaning. Instead, the
    draft contains the proposed mapping. Raise InvalidError, which names the invalid field.
    """
    sample, saved = parse_sample(text, nesting_limit=nesting_limit), integration.mapping
    proposed = build_proposed_draft(sample, saved.rules.severity_words)
    if sample.digest != mapped_for:
        return proposed
    if not _is_saved_sample(sample, integration, nesting_limit=nesting_limit):
        saved = proposed.mapping
    return MappingDraft(sample=sample, mapping=parse_mapping_choices(chosen, sample, saved))


def _is_saved_sample(sample: Sample, integration: IntegrationView, *, nesting_limit: int) -> bool:
    """Return whether a sample equals the saved sample, ignoring formatting."""
    if not integration.sample:
        return False
    try:
        return parse_sample(integration.sample, nesting_limit=nesting_limit).digest == sample.digest
    except InvalidError:
        return False


def build_proposed_draft(sample: Sample, words: Mapping[str, Severity]) -> MappingDraft:
    """Return a draft for a new sample with the proposed mapping and the given severity words."""
    mapping = propose_mapping(Messages(firing=sample.payload)).mapping
    rules = replace(mapping.rules, severity_words={**mapping.rules.severity_words, **words})
    return MappingDraft(
        sample=sample, mapping=FieldMapping(mapping.paths, rules), is_new_sample=True
    )
