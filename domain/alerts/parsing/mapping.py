"""Custom mappings from the values in a sender's payload to the fields of an alert.

A mapping contains the paths for each field, and rules (`mapping_rules`).
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Any, TypeGuard

from domain.alerts.parsing.changing_words import remove_changing_words
from domain.alerts.parsing.json_body import LongNumber
from domain.alerts.parsing.mapping_rules import (
    LABEL_FIELDS,
    NO_RULES,
    MappingRules,
    ValueJoin,
    parse_mapping_rules,
    serialize_mapping_rules,
)
from domain.alerts.parsing.payload_paths import (
    PayloadPath,
    find_value,
    format_path,
    list_children,
    list_pairs,
    remove_value,
    serialize_path,
    set_value,
    validate_path,
)
from domain.alerts.parsing.text_conversion import (
    convert_to_text,
    format_excerpt,
    is_blank,
    split_title,
)
from domain.core.errors import InvalidError
from domain.core.labeled_enums import LabeledEnum
from domain.core.word_joining import join_words

#: Maximum number of values in a sample that are offered as choices.
_MAX_SAMPLE_VALUES = 500
_MAX_PATHS_PER_FIELD = 2
#: Minimum length of an array whose items are separate alerts.
_MIN_ITEMS = 2
#: Key of the rules in a stored mapping. No field of an alert has this name.
_RULES_KEY = "rules"


class AlertField(LabeledEnum):
    """An alert field that can be mapped. The value is the field's name in the generic format."""

    TITLE = "title", "Title"
    DESCRIPTION = "description", "Description"
    START_TIME = "start_time", "Start time"
    END_TIME = "end_time", "End time (resolves the alert)"
    SERVICE = "service", "Service"
    MONITORING_TOOL = "monitoring_tool", "Monitoring tool"
    HOSTS = "hosts", "Hosts"
    SEVERITY = "severity", "Severity"
    FINGERPRINT = "fingerprint", "Fingerprint (groups reports)"
    ENVIRONMENT = "platform_environment_name", "Environment"
    RUNBOOK = "runbook", "Runbook"
    SOURCE_URL = "source_url", "Source link"

    #: Hash function of `str`, so that a member can be used as a key of the payload.
    __hash__ = str.__hash__


#: Fields that differ between reports of the same alert.
VOLATILE_FIELDS = (AlertField.START_TIME, AlertField.END_TIME, AlertField.HOSTS)


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """The path and the optional fallback path of each mapped field, and rules."""

    paths: Mapping[AlertField, tuple[PayloadPath, ...]] = field(default_factory=dict)
    rules: MappingRules = NO_RULES
    #: Source of each field, for display.
    sources: Mapping[AlertField, str] = field(init=False, repr=False, compare=False)
    #: Sources of the VOLATILE_FIELDS, for display.
    volatile_sources: str = field(init=False, repr=False, compare=False)
    #: True if the mapping changes how a payload is parsed, apart from severity words and labels.
    reads_fields: bool = field(init=False, repr=False, compare=False)
    #: True if a payload is copied because the mapping replaces some of its fields.
    replaces_fields: bool = field(init=False, repr=False, compare=False)
    #: Value for the JSON column.
    stored: Mapping[str, object] = field(init=False, repr=False, compare=False)
    #: Arrays of alerts, outermost first. Their first item contains the fingerprint, or the title if
    #: no fingerprint is mapped. The value is True if the mapping reads several keys of this item,
    #: which is then not a pair of a name and a value.
    item_arrays: Mapping[PayloadPath, bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the values that do not depend on the payload."""
        sources = {alert_field: self._format_source(alert_field) for alert_field in AlertField}
        object.__setattr__(self, "sources", sources)
        volatile = [sources[alert_field] for alert_field in VOLATILE_FIELDS]
        volatile += [format_path(rule.path) for rule in self.rules.resolved_when]
        object.__setattr__(self, "volatile_sources", ", ".join(dict.fromkeys(volatile)))
        none: dict[str, Any] = dict.fromkeys(LABEL_FIELDS, ())
        other_rules = replace(self.rules, severity_words={}, confirmed=(), **none)
        object.__setattr__(self, "reads_fields", bool(self.paths or other_rules != NO_RULES))
        is_replaced = bool(self.paths or self.rules.joins or self.rules.ignored_words)
        object.__setattr__(self, "replaces_fields", is_replaced)
        stored = {name.value: [list(path) for path in self.paths[name]] for name in self.paths}
        rules = {_RULES_KEY: serialize_mapping_rules(self.rules)} if self.rules != NO_RULES else {}
        object.__setattr__(self, "stored", {**stored, **rules})
        object.__setattr__(self, "item_arrays", dict(self._find_item_arrays()))

    def _find_item_arrays(self) -> Iterator[tuple[PayloadPath, bool]]:
        # Items with the same fingerprint are one alert. Appended values are not considered, because
        # they may come from an array of affected objects.
        identity = (
            AlertField.FINGERPRINT if AlertField.FINGERPRINT in self.paths else AlertField.TITLE
        )
        for path in self.paths.get(identity, ()):
            for end in (index for index, segment in enumerate(path) if segment == 0):
                inner = [each[end:] for each in self.all_paths if each[:end] == path[:end]]
                # If the mapping also reads another item, the array does not contain alerts.
                if {each[0] for each in inner if each} == {0}:
                    yield path[:end], len({each[1:2] for each in inner}) > 1

    def split_payload(self, payload: object) -> Iterator[object]:
        """Yield a copy of a payload for each item of the array that contains its alerts.

        In each copy, the array contains only one item. Paths to the first item of the array
        therefore read that item. An item that is not an object is yielded unchanged. If there is no
        such array, the payload itself is yielded.
        """
        return _split_payload(payload, self.item_arrays)

    def _format_source(self, alert_field: AlertField) -> str:
        return join_words(self.list_sources(alert_field))

    def list_sources(self, alert_field: AlertField) -> list[str]:
        """Return the source of a field and of each value that is appended to it, for display."""
        paths = self.paths.get(alert_field, ((alert_field.value,),))
        join = self.rules.joins.get(alert_field)
        source = " or else ".join(map(format_path, paths))
        return [source, *map(format_path, join.paths if join else ())]

    @property
    def all_paths(self) -> tuple[PayloadPath, ...]:
        """All paths that the mapping reads."""
        return (*(path for paths in self.paths.values() for path in paths), *self.rules.paths)

    @property
    def mapped_sources(self) -> tuple[tuple[str, str], ...]:
        """Label and source of each field that has mapped paths or appended values."""
        mapped = {*self.paths, *self.rules.joins}
        return tuple((each.label, self.sources[each]) for each in AlertField if each in mapped)

    def with_rules(self, **changes: Any) -> "FieldMapping":
        """Return a copy in which some rules are replaced.

        The keyword arguments are fields of `MappingRules`.
        """
        return FieldMapping(self.paths, replace(self.rules, **changes))

    def read_fields(self, payload: Mapping[str, object]) -> Mapping[str, object]:
        """Return the payload with the value of each mapped field under the field's own name.

        A mapped field is only read from its paths, since a key such as `end_time` may have another
        meaning for the sender. Other fields have the value of the key with the same name.
        """
        if not self.replaces_fields:
            return payload
        read = {
            alert_field: self._find_field_value(payload, alert_field) for alert_field in self.paths
        }
        found: dict[str, object] = {**payload, **{each.value: read[each] for each in read}}
        for name, join in self.rules.joins.items():
            found[name] = _join_values(
                found.get(name), payload, join, as_array=name == _SEPARATELY_JOINED_FIELD
            )
        if ignored := self.rules.ignored_words:
            identity = found.get(AlertField.FINGERPRINT)
            found[AlertField.FINGERPRINT] = _ignore_changing_words(identity, frozenset(ignored))
        return found

    def _find_field_value(self, payload: Mapping[str, object], alert_field: AlertField) -> object:
        found = (find_value(payload, path) for path in self.paths[alert_field])
        return next((value for value in found if not is_blank(value)), None)

    def extract_stable_part(self, payload: Mapping[str, object]) -> Mapping[str, object]:
        """Return the payload without the values that differ between reports of the same alert."""
        stable: Mapping[str, object] = {
            name: payload[name] for name in payload if name not in VOLATILE_FIELDS
        }
        for alert_field in VOLATILE_FIELDS:
            for path in self.paths.get(alert_field, ()):
                stable = remove_value(stable, path)
        for rule in self.rules.resolved_when:
            stable = remove_value(stable, rule.path)
        return stable


#: Field whose parts remain separate. If the parts were joined, different parts could result in
#: equal strings.
_SEPARATELY_JOINED_FIELD = AlertField.FINGERPRINT


def _join_values(
    first: object, payload: Mapping[str, object], join: ValueJoin, *, as_array: bool
) -> object:
    parts = [first, *(find_value(payload, path) for path in join.paths)]
    if as_array:
        return parts
    texts = (split_title(convert_to_text(part).strip())[0] for part in parts if not is_blank(part))
    return join.separator.join(dict.fromkeys(texts))


def _ignore_changing_words(value: object, ignored: Collection[str]) -> object:
    """Return a text, or an array of texts, without the words that change."""
    if isinstance(value, list):
        return [_ignore_changing_words(each, ignored) for each in value]
    return remove_changing_words(value, ignored) if isinstance(value, str) else value


def _split_payload(payload: object, arrays: Mapping[PayloadPath, bool]) -> Iterator[object]:
    for path, is_certain in arrays.items():
        items = find_value(payload, path)
        if not _contains_alerts(items) or (list_pairs(items) and not is_certain):
            continue
        within = {each: arrays[each] for each in arrays if each[: len(path)] == path != each}
        for item in items:
            if isinstance(item, dict):
                yield from _split_payload(set_value(payload, path, [item]), within)
            else:
                yield item
        return
    yield payload


def _contains_alerts(items: object) -> TypeGuard[list[object]]:
    """Return whether a value is an array of several items, at least one of them an object."""
    return (
        isinstance(items, list)
        and len(items) >= _MIN_ITEMS
        and any(isinstance(item, dict) for item in items)
    )


#: Mapping that reads each field from the key with the same name.
NO_FIELD_MAPPING = FieldMapping()


def parse_mapping(stored: object) -> FieldMapping:
    """Parse a stored mapping.

    Raise InvalidError if the mapping is malformed.
    """
    if not isinstance(stored, dict):
        raise InvalidError("A mapping must be an object with the paths of each field.")
    paths: dict[AlertField, tuple[PayloadPath, ...]] = {}
    for name, given in stored.items():
        if name == _RULES_KEY:
            continue
        alert_field = _parse_alert_field(name)
        if not (isinstance(given, list) and 0 < len(given) <= _MAX_PATHS_PER_FIELD):
            message = "A field must have one path, and can have a fallback path."
            raise InvalidError(message, field=name)
        paths[alert_field] = tuple(map(validate_path, given))
    return FieldMapping(paths, parse_mapping_rules(stored.get(_RULES_KEY, {})))


def load_mapping(stored: object) -> FieldMapping:
    """Return a stored mapping, or NO_FIELD_MAPPING if no mapping is stored.

    Mappings are validated when they are saved. If this release cannot read a mapping that a later
    release saved, the result is NO_FIELD_MAPPING, so that no alerts are rejected.
    """
    if not stored:
        return NO_FIELD_MAPPING
    try:
        return parse_mapping(stored)
    except InvalidError:
        return NO_FIELD_MAPPING


@lru_cache(maxsize=1024)
def load_mapping_from_json(text: str | None) -> FieldMapping:
    """Return the mapping in a JSON string, like `load_mapping`. Results are cached."""
    return load_mapping(json.loads(text)) if text else NO_FIELD_MAPPING


def _parse_alert_field(name: str) -> AlertField:
    try:
        return AlertField(name)
    except ValueError as error:
        raise InvalidError(f"{format_excerpt(name)} is not a field of an alert.") from error


@dataclass(frozen=True, kw_only=True)
class SampleEntry:
    """The path and the JSON type of a value in a sample payload."""

    path: PayloadPath
    #: JSON type: string, number, boolean, null, array or object.
    json_type: str

    @property
    def label(self) -> str:
        """Path as shown on web pages."""
        return format_path(self.path)

    @property
    def form_value(self) -> str:
        """Path as submitted by forms."""
        return serialize_path(self.path)


@dataclass(frozen=True, kw_only=True)
class SampleValue(SampleEntry):
    """A value in a sample that a field can be mapped to."""

    #: First characters of the value, in quotes.
    example: str


def build_sample_value(path: PayloadPath, value: object) -> SampleValue:
    """Return the type and the first characters of a value."""
    return SampleValue(path=path, json_type=get_json_type(value), example=format_excerpt(value))


def list_sample_values(sample: Mapping[str, object]) -> tuple[SampleValue, ...]:
    """Return up to 500 values in a sample that fields can be mapped to, in order."""
    values = islice(_walk_values((), sample), _MAX_SAMPLE_VALUES)
    return tuple(build_sample_value(path, value) for path, value in values)


def _walk_values(path: PayloadPath, value: object) -> Iterator[tuple[PayloadPath, object]]:
    if path and not isinstance(value, dict):
        yield path, value
    for segment, child in list_children(value):
        yield from _walk_values((*path, segment), child)


_JSON_TYPES: Mapping[type, str] = {
    str: "string",
    int: "number",
    float: "number",
    LongNumber: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}


def get_json_type(value: object) -> str:
    """Return the JSON type of a value (RFC 8259 section 3), with `boolean` for true and false."""
    return _JSON_TYPES[type(value)]
