"""Sample payloads from senders, and the mappings that are proposed or chosen for samples."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from domain.alerts.integrations.types import IntegrationView
from domain.alerts.parsing.incoming_alert import Severity, UnreadableBodyError
from domain.alerts.parsing.json_body import parse_body_object, parse_json
from domain.alerts.parsing.mapping import (
    NO_FIELD_MAPPING,
    AlertField,
    FieldMapping,
    SampleEntry,
    SampleValue,
    build_sample_value,
    get_json_type,
    list_sample_values,
)
from domain.alerts.parsing.mapping_rules import (
    MAX_JOINED_VALUES,
    MAX_RULES_PER_KIND,
    NO_RULES,
    MappingRules,
    Operator,
    PayloadCondition,
    ValueJoin,
    is_rule_word,
    validate_ignored_words,
    validate_payload_condition,
    validate_value_join,
)
from domain.alerts.parsing.payload_paths import (
    PayloadPath,
    find_value,
    format_path,
    list_children,
    parse_path,
    serialize_path,
)
from domain.alerts.parsing.severity import USUAL_SEVERITY_WORDS
from domain.alerts.parsing.text_conversion import (
    convert_to_short_text,
    convert_to_text,
    format_canonical_json,
    format_indented_json,
    is_blank,
    replace_unstorable_characters,
)
from domain.alerts.recognition.known_tools import propose_mapping
from domain.alerts.recognition.messages import Messages
from domain.core.errors import InvalidError, InvalidParametersError, InvalidValue

#: Maximum number of fields in the tree of a sample.
MAX_TREE_NODES = 500
#: Maximum length of a value in the tree, in characters.
_MAX_SHOWN_LENGTH = 200


@dataclass(frozen=True, kw_only=True)
class SampleNode(SampleEntry):
    """A field of a sample with its nested fields."""

    #: Key of the field, or its array index in brackets, such as `[0]`.
    name: str
    #: First characters of the value as JSON, or the number of items in an array or object.
    gist: str
    #: Value as a word in a rule, or None if rules cannot compare the value.
    word: str | None
    branches: tuple["SampleNode", ...]


def build_sample_tree(payload: Mapping[str, object]) -> tuple[SampleNode, ...]:
    """Return the tree of a sample in its original order, with at most MAX_TREE_NODES fields.

    If a string contains a JSON object, the fields of the object are nested below the string.
    """
    return _build_child_nodes((), payload, iter(range(MAX_TREE_NODES)))


def _build_child_nodes(
    path: PayloadPath, value: object, room: Iterator[int]
) -> tuple[SampleNode, ...]:
    found = []
    for segment, child in list_children(value):
        if next(room, None) is None:
            break
        at = (*path, segment)
        found.append(
            SampleNode(
                name=segment if isinstance(segment, str) else f"[{segment}]",
                path=at,
                json_type=get_json_type(child),
                gist=_summarize_value(child),
                word=_find_rule_word(child),
                branches=_build_child_nodes(at, child, room),
            )
        )
    return tuple(found)


def _summarize_value(value: object) -> str:
    if isinstance(value, dict | list):
        if not value:
            return "empty"
        return "1 item" if len(value) == 1 else f"{len(value)} items"
    text = convert_to_short_text(value, _MAX_SHOWN_LENGTH) or ""
    return f'"{text}"' if isinstance(value, str) else text or "null"


def _find_rule_word(value: object) -> str | None:
    if is_blank(value) or isinstance(value, dict | list):
        return None
    word = convert_to_text(value).strip()
    return word if is_rule_word(word) else None


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
    #: Words that the fingerprint ignores, separated by commas.
    ignored_words: str = ""
    resolved_when: Sequence[ConditionChoice] = ()
    dropped_when: Sequence[ConditionChoice] = ()


NO_CHOICES = RuleChoices()


def build_rule_choices(rules: MappingRules) -> RuleChoices:
    """Return the form rows for rules, with an additional empty row in each table."""
    title = rules.joins.get(AlertField.TITLE)
    return RuleChoices(
        joins={name: _build_join_choices(rules.joins.get(name)) for name in JOINABLE_FIELDS},
        separator=title.separator if title else NO_CHOICES.separator,
        ignored_words=", ".join(rules.ignored_words),
        resolved_when=_build_condition_choices(rules.resolved_when),
        dropped_when=_build_condition_choices(rules.dropped_when),
    )


def _build_join_choices(join: ValueJoin | None) -> Sequence[str]:
    chosen = [serialize_path(path) for path in join.paths] if join else []
    has_room = len(chosen) < MAX_JOINED_VALUES
    return chosen + [""] * max(_OFFERED_JOIN_COUNT - len(chosen), int(has_room))


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
        ignored_words=validate_ignored_words(_split_words(chosen.ignored_words), field="mapping"),
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
        words = _split_words(row.words)
        if not row.path and words:
            message = f'Choose the field to compare with "{row.words.strip()}".'
            raise InvalidError(message, field="mapping")
        if row.path:
            path = _parse_offered_path(row.path, offered)
            yield validate_payload_condition(path, row.operator, words, field="mapping")


def _split_words(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


#: Maximum size of a sample in bytes. A sample contains one alert; receivers accept much larger
#: bodies.
MAX_SAMPLE_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sample payload: its JSON text, the parsed object, and the values that can be mapped."""

    text: str
    payload: Mapping[str, object]
    values: tuple[SampleValue, ...]

    @property
    def digest(self) -> str:
        """SHA-256 hash of the canonical JSON, which does not depend on formatting."""
        return sha256(format_canonical_json(self.payload)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class MessageValue(SampleValue):
    """A value that fields and rules can read, and the message that contains it."""

    #: `sample`, `recovery` or `repeat`, or an empty string if no message contains the path.
    message: str


def list_message_values(messages: Messages) -> tuple[MessageValue, ...]:
    """Return the values in the sample, followed by values that only the other messages contain."""
    found: dict[PayloadPath, MessageValue] = {}
    for name, payload in _name_payloads(messages).items():
        for value in list_sample_values(payload):
            found.setdefault(value.path, MessageValue(**vars(value), message=name))
    return tuple(found.values())


def _name_payloads(messages: Messages) -> Mapping[str, Mapping[str, object]]:
    named = {"sample": messages.firing, "recovery": messages.recovery, "repeat": messages.repeat}
    return {name: payload for name, payload in named.items() if payload is not None}


@dataclass(frozen=True, kw_only=True)
class FieldChoice:
    """A row of the mapping table: a field and the paths that it is read from."""

    field: AlertField
    #: Paths as written by `serialize_path`. They are empty if nothing is chosen.
    first: str
    fallback: str

    @property
    def label(self) -> str:
        """Label of the field on web pages."""
        return self.field.label


def parse_sample(text: str, *, nesting_limit: int) -> Sample:
    """Parse the JSON text of a sample payload.

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


@dataclass(frozen=True, kw_only=True)
class MessageTexts:
    """Messages about one alert as JSON strings. The repeat and the recovery may be empty."""

    sample: str
    repeat: str = ""
    recovery: str = ""


def get_saved_messages(integration: IntegrationView) -> MessageTexts:
    """Return the messages that are saved with the mapping of an integration."""
    return MessageTexts(
        sample=integration.sample or "",
        repeat=integration.sample_repeat or "",
        recovery=integration.sample_recovery or "",
    )


def format_messages(sample: Sample, messages: Messages) -> MessageTexts:
    """Return a sample and its other messages in the form in which they are saved with a mapping."""
    repeat, recovery = (
        format_sample(each) if each else "" for each in (messages.repeat, messages.recovery)
    )
    return MessageTexts(sample=sample.text, repeat=repeat, recovery=recovery)


def parse_messages(texts: MessageTexts, *, nesting_limit: int) -> tuple[Sample, Messages]:
    """Return the parsed sample and all messages. Only the first object in an array is used.

    Raise InvalidError, which names the message, if a message is not valid.
    """
    found = {
        name: _parse_message(text, name, nesting_limit=nesting_limit)
        for name, text in vars(texts).items()
        if name == "sample" or text.strip()
    }
    sample = found.pop("sample")
    others = {name: each.payload for name, each in found.items()}
    return sample, Messages(firing=sample.payload, **others)


def _parse_message(text: str, name: str, *, nesting_limit: int) -> Sample:
    try:
        one = _select_first_object(text, nesting_limit)
        return parse_sample(one, nesting_limit=nesting_limit)
    except InvalidError as error:
        raise InvalidError(str(error).replace("sample", name), field=name) from error


def _select_first_object(text: str, nesting_limit: int) -> str:
    """Return the text of the first object in an array, or the text itself."""
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"), nesting_limit=nesting_limit)
    except UnreadableBodyError:
        return text  # parse_sample reports the error.
    first = value[0] if isinstance(value, list) and value else None
    return format_sample(first) if isinstance(first, dict) else text


def format_sample(payload: object) -> str:
    """Return a payload as indented JSON, or on one line if it would otherwise be too large."""
    text = format_indented_json(payload)
    if len(text.encode()) <= MAX_SAMPLE_BYTES:
        return text
    return replace_unstorable_characters(
        format_canonical_json(payload).decode("utf-8", "surrogatepass")
    )


@dataclass(frozen=True, kw_only=True)
class MappingChoices:
    """The choices in a form: the path and the fallback path of each field, and rules."""

    paths: Mapping[AlertField, Sequence[str]]
    rules: RuleChoices = NO_CHOICES


def parse_mapping_choices(
    chosen: MappingChoices,
    sample: Sample,
    saved: FieldMapping = NO_FIELD_MAPPING,
    others: Iterable[PayloadPath] = (),
) -> FieldMapping:
    """Convert the choices in a form to a mapping.

    `saved` can also be a mapping that was proposed for a new sample. The severity words of `saved`
    are retained. If another field is chosen for the severity, the usual severity words are added.
    Raise InvalidError if a path is neither in the sample, nor in `saved`, nor in `others`.
    """
    paths = (*(value.path for value in sample.values), *saved.all_paths, *others)
    offered = frozenset(map(serialize_path, paths))
    rules = parse_rule_choices(chosen.rules, offered=offered)
    is_guess = saved.rules.is_guess and rules.resolved_when == saved.rules.resolved_when
    read = _parse_chosen_paths(chosen.paths, offered)
    known, words = AlertField.SEVERITY, saved.rules.severity_words
    if known in read and read[known] != saved.paths.get(known):
        words = {**USUAL_SEVERITY_WORDS, **words}
    return FieldMapping(
        read,
        replace(
            rules,
            severity_words=words,
            is_guess=is_guess,
            confirmed=saved.rules.confirmed,
        ),
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
    messages: Messages,
    rules: MappingRules = NO_RULES,
    saved: FieldMapping = NO_FIELD_MAPPING,
) -> FieldMapping:
    """Return a mapping with the given rules and paths. The second path of a field is its fallback.

    A path must be in one of the messages, the saved mapping, or the mapping proposed for the
    messages. Saved and proposed mappings may read values that only other payloads from the sender
    contain.

    The paths for the end time and for rules are not checked, because the values that resolve or
    drop an alert are often missing from the sample.

    Raise InvalidParametersError, which lists all invalid paths, if a path is not valid.
    """
    offered = {value.path for value in list_message_values(messages)}
    for known in (messages, Messages(firing=messages.firing)):
        offered.update(propose_mapping(known).mapping.all_paths)
    offered.update(saved.all_paths)
    problems = [
        InvalidValue(
            f"mapping.{field}", f"contains {format_path(path)}, which is in none of the messages"
        )
        for field, paths in given.items()
        for path in paths
        if path not in offered and field is not AlertField.END_TIME
    ]
    if problems:
        raise InvalidParametersError(problems)
    return FieldMapping({field: tuple(dict.fromkeys(given[field])) for field in given}, rules)


@dataclass(frozen=True, kw_only=True)
class MappingDraft:
    """An unsaved mapping with its sample."""

    sample: Sample
    mapping: FieldMapping
    #: Sample, with the repeat and the recovery if they are known.
    messages: Messages
    #: True if the sample differs from the sample for which the choices were made. The mapping is
    #: then the proposed mapping.
    is_new_sample: bool = False
    #: Digest of the mapping that was last proposed, or an empty string.
    proposed: str = ""

    @property
    def is_proposed(self) -> bool:
        """True if the user has not changed the proposed mapping."""
        return self.proposed == self.digest

    @property
    def digest(self) -> str:
        """SHA-256 hash of the mapping, except for severity words and confirmations."""
        stored = self.mapping.with_rules(severity_words={}, is_guess=False, confirmed=()).stored
        return sha256(format_canonical_json(stored)).hexdigest()

    @property
    def choices(self) -> tuple[FieldChoice, ...]:
        """Rows of the mapping table, one for each field."""
        rows = []
        for field in AlertField:
            paths = map(serialize_path, self.mapping.paths.get(field, ()))
            first, fallback, *_ = (*paths, "", "")
            rows.append(FieldChoice(field=field, first=first, fallback=fallback))
        return tuple(rows)

    @property
    def rule_choices(self) -> RuleChoices:
        """Rows of the form's rule tables."""
        return build_rule_choices(self.mapping.rules)

    @property
    def trees(self) -> Mapping[str, tuple[SampleNode, ...]]:
        """Fields of the messages as trees, by the name of the message."""
        payloads = _name_payloads(self.messages)
        trees = {name: build_sample_tree(payload) for name, payload in payloads.items()}
        return {name: tree for name, tree in trees.items() if tree}

    @cached_property
    def offered_values(self) -> tuple[MessageValue, ...]:
        """Values in the messages, and values that only the mapping contains."""
        found = {value.path: value for value in list_message_values(self.messages)}
        for path in self.mapping.all_paths:
            value = build_sample_value(path, find_value(self.sample.payload, path))
            found.setdefault(path, MessageValue(**vars(value), message=""))
        return tuple(found.values())


def load_draft(
    texts: MessageTexts, integration: IntegrationView, *, nesting_limit: int
) -> MappingDraft | None:
    """Return the saved mapping as a draft for messages, or None if there is no sample.

    Raise InvalidError, which names the message, if a message is not valid.
    """
    if not texts.sample:
        return None
    sample, messages = parse_messages(texts, nesting_limit=nesting_limit)
    return MappingDraft(sample=sample, mapping=integration.mapping, messages=messages)


def parse_draft(
    texts: MessageTexts,
    chosen: MappingChoices,
    integration: IntegrationView,
    *,
    mapped_for: str,
    proposed: str,
    nesting_limit: int,
) -> MappingDraft:
    """Parse the draft in a submitted form.

    `mapped_for` is the digest of the sample that the choices were made for. For any other sample,
    the choices are ignored, since their paths may be missing or have another meaning. Instead, the
    draft contains the proposed mapping. `proposed` is the digest of the mapping that was proposed
    last. Raise InvalidError, which names the field, if a value is not valid.
    """
    sample, messages = parse_messages(texts, nesting_limit=nesting_limit)
    saved = integration.mapping
    saved_sample = load_sample(integration, nesting_limit=nesting_limit)
    proposal = build_proposed_draft(sample, messages, saved.rules.severity_words)
    if sample.digest != mapped_for:
        return proposal
    if saved_sample is None or sample.digest != saved_sample.digest:
        saved = proposal.mapping
    others = (
        *proposal.mapping.all_paths,
        *(value.path for value in list_message_values(messages)),
    )
    mapping = parse_mapping_choices(chosen, sample, saved, others)
    return MappingDraft(sample=sample, mapping=mapping, messages=messages, proposed=proposed)


def load_sample(integration: IntegrationView, *, nesting_limit: int) -> Sample | None:
    """Return the saved sample, or None if no sample is saved or it exceeds the current limits."""
    try:
        return parse_sample(integration.sample or "", nesting_limit=nesting_limit)
    except InvalidError:
        return None


def build_proposed_draft(
    sample: Sample,
    messages: Messages,
    words: Mapping[str, Severity],
    mapping: FieldMapping | None = None,
) -> MappingDraft:
    """Return a draft for a new sample with the mapping that is proposed for its messages.

    `words` are severity words that are added to the proposed severity words. `mapping` is the
    proposal if it is already known.
    """
    mapping = mapping or propose_mapping(messages).mapping
    mapping = mapping.with_rules(severity_words={**mapping.rules.severity_words, **words})
    draft = MappingDraft(sample=sample, mapping=mapping, messages=messages, is_new_sample=True)
    return replace(draft, proposed=draft.digest)
