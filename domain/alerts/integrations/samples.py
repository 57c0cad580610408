"""Samples of a sender's payload: the mapping of their values, proposed, chosen and checked."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import attrgetter

from domain.alerts.formats.base import Format, Tool
from domain.alerts.formats.registry import FORMATS
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
from domain.alerts.reading.mapping_rules import (
    MOST_CONDITIONS,
    NO_RULES,
    Condition,
    Join,
    MappingRules,
    Operator,
    as_word,
    checked_condition,
    checked_join,
)
from domain.alerts.reading.paths import Path, read_path, resolve, shown, written
from domain.alerts.reading.severity import GENERIC_WORDS, proposed_severity
from domain.alerts.reading.text import canonical_json, excerpt, is_blank
from domain.core.errors import InvalidError, InvalidParametersError, InvalidValue

#: The most fields in a tree.
MOST_BRANCHES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleNode:
    """A field of a sample with the fields inside it."""

    #: The key, or the position in an array as `[0]`.
    name: str
    #: string, number, boolean, null, array or object.
    json_type: str
    #: The beginning of the value as JSON; for arrays and objects their number of items.
    gist: str
    branches: tuple["SampleNode", ...]


def tree_of(payload: Mapping[str, object]) -> tuple[SampleNode, ...]:
    """Return the tree of a sample in its own order, with at most 500 fields."""
    return _branches_of(payload, iter(range(MOST_BRANCHES)))


def _branches_of(value: object, room: Iterator[int]) -> tuple[SampleNode, ...]:
    found = []
    for name, child in _children_of(value):
        if next(room, None) is None:
            break
        found.append(
            SampleNode(
                name=name,
                json_type=json_type_of(child),
                gist=_gist(child),
                branches=_branches_of(child, room),
            )
        )
    return tuple(found)


def _children_of(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from ((f"[{position}]", child) for position, child in enumerate(value))


def _gist(value: object) -> str:
    match value:
        case dict() | list():
            return "empty" if not value else f"{len(value)} in it"
        case str():
            return excerpt(value)
    return excerpt(value)[1:-1]


#: The fields that other values can be put behind.
JOINED_FIELDS = (AlertField.TITLE, AlertField.FINGERPRINT)
#: The number of values that the page offers for it.
_OFFERED_JOINS = 2


@dataclass(frozen=True, kw_only=True)
class ConditionChoice:
    """A row of a table of rules, which is no rule while no field is chosen."""

    #: A path as forms carry it.
    path: str = ""
    operator: str = Operator.IS.value
    #: Separated by commas.
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleChoices:
    """Everything that a form says about rules."""

    joins: Mapping[AlertField, Sequence[str]] = dataclasses.field(default_factory=dict)
    #: Between the parts of a title.
    separator: str = ": "
    resolved_when: Sequence[ConditionChoice] = ()
    dropped_when: Sequence[ConditionChoice] = ()


NO_CHOICES = RuleChoices()


def choices_of_rules(rules: MappingRules) -> RuleChoices:
    """Return what the form shows for rules, with an empty row for another one of each kind."""
    title = rules.joins.get(AlertField.TITLE)
    return RuleChoices(
        joins={name: _offered(rules.joins.get(name)) for name in JOINED_FIELDS},
        separator=title.separator if title else NO_CHOICES.separator,
        resolved_when=_rows(rules.resolved_when),
        dropped_when=_rows(rules.dropped_when),
    )


def _offered(join: Join | None) -> Sequence[str]:
    chosen = [written(path) for path in join.paths] if join else []
    return chosen + [""] * max(_OFFERED_JOINS - len(chosen), 1 if not chosen else 0)


def _rows(conditions: Sequence[Condition]) -> Sequence[ConditionChoice]:
    rows = [
        ConditionChoice(
            path=written(each.path), operator=each.operator.value, words=", ".join(each.words)
        )
        for each in conditions
    ]
    return [*rows, ConditionChoice()] if len(rows) < MOST_CONDITIONS else rows


def read_rule_choices(chosen: RuleChoices, *, offered: frozenset[str]) -> MappingRules:
    """Return the chosen rules; raise InvalidError for one whose path is not offered."""
    joins = {
        name.value: checked_join(paths, chosen.separator, field="mapping")
        for name, texts in chosen.joins.items()
        if (paths := tuple(_path(text, offered) for text in dict.fromkeys(texts) if text))
    }
    return MappingRules(
        resolved_when=tuple(_conditions(chosen.resolved_when, offered)),
        dropped_when=tuple(_conditions(chosen.dropped_when, offered)),
        joins=joins,
    )


def _path(text: str, offered: frozenset[str]) -> Path:
    if text not in offered:
        raise InvalidError("Choose a field of the sample for each rule.", field="mapping")
    return read_path(text)


def _conditions(rows: Sequence[ConditionChoice], offered: frozenset[str]) -> Iterator[Condition]:
    if len(rows) > MOST_CONDITIONS:
        message = f"At most {MOST_CONDITIONS} rules of a kind are possible."
        raise InvalidError(message, field="mapping")
    for row in rows:
        words = [word for part in row.words.split(",") if (word := part.strip())]
        if not row.path and words:
            message = f"Choose the field that is compared with “{row.words.strip()}”."
            raise InvalidError(message, field="mapping")
        if row.path:
            path = _path(row.path, offered)
            yield checked_condition(path, row.operator, words, field="mapping")


#: Values deeper than this are seldom meant for people.
_DEEPEST_GUESS = 3

#: Names of keys that probably mean a field, the likeliest first. Of the same key the one that is
#: less deep is taken.
_NAMES: Mapping[AlertField, str] = {
    AlertField.TITLE: "title alert_name alertname summary subject event_name name headline "
    "rule_name check_name short_message message msg",
    AlertField.DESCRIPTION: "description details long_description body message msg text reason "
    "output full_message",
    AlertField.START_TIME: "start_time started_at startsat fired_at triggered_at opened_at "
    "created_at timestamp",
    AlertField.END_TIME: "end_time ended_at endsat resolved_at recovered_at closed_at",
    AlertField.SERVICE: "service service_name app application component job system",
    AlertField.MONITORING_TOOL: "monitoring_tool tool",
    AlertField.HOSTS: "hosts host hostname host_name fqdn instance node server machine device",
    AlertField.SEVERITY: "severity prio priority level urgency criticality impact",
    AlertField.FINGERPRINT: "fingerprint dedup_key dedupe_key alert_key incident_key alert_id "
    "incident_id issue_id check_id monitor_id trigger_id",
    AlertField.ENVIRONMENT: "platform_environment_name environment env stage",
    AlertField.RUNBOOK: "runbook runbook_url playbook url link",
}
_STATES = (
    *("status", "state", "alert_state", "event_type", "action"),
    *("type", "current_state", "condition"),
)
#: What a state says that is over, and what one says that is not.
_OVER = frozenset(
    (
        *("ok", "okay", "up", "resolved", "resolve", "recovered", "recovery", "success"),
        *("closed", "close", "normal", "cleared", "healthy", "good", "passing"),
    )
)
_FIRING = frozenset(
    (
        *("firing", "fire", "down", "problem", "failure", "failed", "fail", "error", "critical"),
        *("warning", "warn", "alert", "alerting", "alarm", "triggered", "trigger", "open"),
        *("opened", "active", "unhealthy", "bad", "failing", "degraded", "new"),
    )
)

#: What is known by its format comes before what is known by a mapping.
_TOOLS: Sequence[tuple[Format, Tool]] = tuple(
    (each, tool) for each in sorted(FORMATS, key=attrgetter("has_mapping")) for tool in each.tools
)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What is proposed for a payload."""

    #: The tool that probably sent it; None if it is not known.
    tool: str | None
    format: Format
    mapping: FieldMapping
    #: What to set in the tool.
    hint: str = ""


def propose(payload: Mapping[str, object]) -> Proposal:
    """Return what is proposed for a payload."""
    for body_format, tool in _TOOLS:
        if tool.knows(payload):
            return Proposal(
                tool=tool.name, format=body_format, mapping=tool.mapping, hint=tool.hint
            )
    return Proposal(tool=None, format=FORMATS[0], mapping=guess(payload))


def guess(payload: Mapping[str, object]) -> FieldMapping:
    """Return a mapping by the names of a payload's keys; fields of the usual names need none."""
    candidates = tuple(_candidates(payload))
    paths: dict[AlertField, tuple[Path, ...]] = {}
    taken: set[Path] = set()
    for field, names in _NAMES.items():
        found = _best(names.split(), candidates, taken)
        if found is not None:
            taken.add(found)
            if found != (field.value,):
                paths[field] = (found,)
    rules = MappingRules(
        severity_words=_words(payload, paths.get(AlertField.SEVERITY)),
        resolved_when=tuple(_resolved_when(candidates, payload)),
    )
    return FieldMapping(paths, rules) if paths or rules != MappingRules() else UNMAPPED


def _candidates(payload: Mapping[str, object]) -> Iterator[tuple[Path, str]]:
    """Yield the paths that are not deep, each with its last key in words of small letters."""
    for value in values_of(payload):
        if len(value.path) <= _DEEPEST_GUESS and not isinstance(value.path[-1], int):
            key = str(value.path[-1]).lower()
            yield value.path, key.replace("-", "_").replace(" ", "_")


def _best(
    names: list[str], candidates: tuple[tuple[Path, str], ...], taken: set[Path]
) -> Path | None:
    for name in names:
        found = [path for path, key in candidates if key == name and path not in taken]
        if found:
            return min(found, key=len)
    return None


def _words(payload: Mapping[str, object], paths: tuple[Path, ...] | None) -> dict[str, Severity]:
    """Return the word of the sample's severity with what it probably means, unless it is known."""
    value = resolve(payload, paths[0] if paths else (AlertField.SEVERITY.value,))
    if is_blank(value) or isinstance(value, list | dict):
        return {}
    word = as_word(value)
    return (
        {} if isinstance(value, str) and word in GENERIC_WORDS else {word: proposed_severity(word)}
    )


def _resolved_when(
    candidates: tuple[tuple[Path, str], ...], payload: Mapping[str, object]
) -> Iterator[Condition]:
    for name in _STATES:
        for path, key in candidates:
            word = as_word(resolve(payload, path))
            if key == name and word in _OVER | _FIRING:
                words = dict.fromkeys(([word] if word in _OVER else []) + ["resolved", "ok", "up"])
                yield Condition(path, Operator.IS, tuple(words))
                return


#: In bytes of UTF-8. A sample shows one alert; receivers accept much larger bodies.
LARGEST_SAMPLE = 64 * 1024


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
        return self.field.label


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
            raise InvalidError(f"{field.label}: choose a field of the sample.", field="mapping")
        if named:
            paths[field] = tuple(map(read_path, named))
    return paths


def map_sample(
    given: Mapping[AlertField, Sequence[Path]],
    sample: Sample,
    rules: MappingRules = NO_RULES,
    saved: FieldMapping = UNMAPPED,
) -> FieldMapping:
    """Return the mapping with these rules and paths, the second path of a field its fallback.

    A path is a value of the sample, or one that the saved mapping or the proposal for the sample
    reads from other payloads of the sender.

    The path of a rule may be one that the sample does not have: what tells that an alert is over,
    or no alert, is often in other payloads alone.

    Raise InvalidParametersError with every other path.
    """
    proposed = propose(sample.payload).mapping
    offered = {value.path for value in sample.values}
    offered.update(saved.all_paths, proposed.all_paths)
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
