"""Custom mappings from the values of a sender's payload to the fields of an alert.

A path leads from the top of a payload to one value. It is stored as an array of keys and indexes,
so that a key may contain dots; pages show it as `labels["app.kind"][0]`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from domain.alerts.reading.body import LongNumber
from domain.alerts.reading.text import excerpt, is_blank
from domain.errors import InvalidError

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
#: The most values of a sample that a person can choose from.
_MOST_SAMPLE_VALUES = 500
_DEEPEST_PATH = 100
_MOST_PATHS = 2


class AlertField(StrEnum):
    """A field of an alert that can be mapped, by its name in the generic format."""

    TITLE = "title"
    DESCRIPTION = "description"
    START_TIME = "start_time"
    END_TIME = "end_time"
    SERVICE = "service"
    MONITORING_TOOL = "monitoring_tool"
    HOSTS = "hosts"
    SEVERITY = "severity"
    FINGERPRINT = "fingerprint"
    ENVIRONMENT = "platform_environment_name"
    RUNBOOK = "runbook"

    #: The hash of its text: so that it is a key of the payload itself.
    __hash__ = str.__hash__


#: Fields that differ between reports of the same alert.
VOLATILE = (AlertField.START_TIME, AlertField.END_TIME, AlertField.HOSTS)


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """The path of each mapped field and, optionally, a fallback path."""

    paths: Mapping[AlertField, tuple[Path, ...]] = field(default_factory=dict)
    #: The source of each field as a text for people. Computed once, since each alert needs it.
    sources: Mapping[AlertField, str] = field(init=False, repr=False, compare=False)
    #: The sources of the VOLATILE fields as a text for people.
    volatile: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the texts."""
        sources = {alert_field: self._source(alert_field) for alert_field in AlertField}
        object.__setattr__(self, "sources", sources)
        object.__setattr__(
            self, "volatile", ", ".join(sources[alert_field] for alert_field in VOLATILE)
        )

    def _source(self, alert_field: AlertField) -> str:
        if alert_field not in self.paths:
            return alert_field.value
        return " or else ".join(map(shown, self.paths[alert_field]))

    def fields(self, payload: Mapping[str, object]) -> Mapping[str, object]:
        """Return the payload with the value of each mapped field under the field's own name.

        A mapped field is read from its paths only: the sender's own `end_time` may mean something
        else. Other fields keep the value of the key of their own name.
        """
        if not self.paths:
            return payload
        return {
            **payload,
            **{alert_field: self._value(payload, alert_field) for alert_field in self.paths},
        }

    def _value(self, payload: Mapping[str, object], alert_field: AlertField) -> object:
        found = (resolve(payload, path) for path in self.paths[alert_field])
        return next((value for value in found if not is_blank(value)), None)

    def stable_part(self, payload: Mapping[str, object]) -> Mapping[str, object]:
        """Return the payload without the values that differ between reports of the same alert."""
        stable: Mapping[str, object] = {
            name: payload[name] for name in payload if name not in VOLATILE
        }
        for alert_field in VOLATILE:
            for path in self.paths.get(alert_field, ()):
                stable = _without(stable, path)
        return stable


#: Each field is read from the key of its own name.
UNMAPPED = FieldMapping()


def resolve(payload: object, path: Path) -> object:
    """Return the value that a path leads to, or None if there is none."""
    value = payload
    for segment in path:
        match value, segment:
            case dict(), str():
                value = value.get(segment)
            case list(), int() if segment < len(value):
                value = value[segment]
            case _:
                return None
    return value


def _without(value: object, path: Path) -> Any:
    segment, *rest = path
    match value, segment:
        case dict(), str() if segment in value:
            changed = {name: value[name] for name in value if name != segment}
            return {**changed, segment: _without(value[segment], tuple(rest))} if rest else changed
        case list(), int() if segment < len(value):
            # The index stays occupied, so that the items after it keep theirs.
            here = _without(value[segment], tuple(rest)) if rest else None
            return [*value[:segment], here, *value[segment + 1 :]]
    return value


def shown(path: Path) -> str:
    """Return a path as pages show it."""
    text = ""
    for segment in path:
        if isinstance(segment, str) and _PLAIN_KEY.fullmatch(segment):
            text += f".{segment}" if text else segment
        else:
            text += f"[{json.dumps(segment, ensure_ascii=False)}]"
    return text


def read_path(text: str) -> Path:
    """Parse a path that `written` returned; raise InvalidError if it is malformed."""
    try:
        segments = json.loads(text)
    except (ValueError, RecursionError):
        segments = None
    if not (isinstance(segments, list) and 0 < len(segments) <= _DEEPEST_PATH):
        raise InvalidError("Choose a field of the sample.")
    if not all(_is_segment(segment) for segment in segments):
        raise InvalidError("Choose a field of the sample.")
    return tuple(segments)


def _is_segment(segment: object) -> bool:
    return isinstance(segment, str) or (type(segment) is int and segment >= 0)


def written(path: Path) -> str:
    """Return a path as forms carry it: a JSON array."""
    return json.dumps(list(path), ensure_ascii=False)


def read_mapping(stored: object) -> FieldMapping:
    """Read a mapping from its stored value; raise InvalidError if it is malformed."""
    if not isinstance(stored, dict):
        raise InvalidError("A mapping names the path of each field.")
    paths: dict[AlertField, tuple[Path, ...]] = {}
    for name, given in stored.items():
        alert_field = _alert_field(name)
        if not (isinstance(given, list) and 0 < len(given) <= _MOST_PATHS):
            raise InvalidError("A field has one path, and one to fall back to.", field=name)
        paths[alert_field] = tuple(read_path(json.dumps(path)) for path in given)
    return FieldMapping(paths)


def stored_mapping(stored: object) -> FieldMapping:
    """Return a stored mapping, or UNMAPPED if there is none.

    A mapping is checked when it is saved. If a later release saved one that cannot be read here,
    return UNMAPPED as well, so that no alert is refused for it.
    """
    if not stored:
        return UNMAPPED
    try:
        return read_mapping(stored)
    except InvalidError:
        return UNMAPPED


@lru_cache(maxsize=1024)
def mapping_of_json(text: str | None) -> FieldMapping:
    """Return the mapping in a JSON text, as `stored_mapping` does; each text is parsed once."""
    return stored_mapping(json.loads(text)) if text else UNMAPPED


def _alert_field(name: str) -> AlertField:
    try:
        return AlertField(name)
    except ValueError as error:
        raise InvalidError(f"{excerpt(name)} is no field of an alert.") from error


def stored_value(mapping: FieldMapping) -> dict[str, list[list[str | int]]]:
    """Return a mapping as the JSON column stores it."""
    return {
        alert_field.value: [list(path) for path in mapping.paths[alert_field]]
        for alert_field in mapping.paths
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleValue:
    """A value of a sample that a field can be mapped to."""

    path: Path
    #: string, number, boolean, null or array.
    json_type: str
    #: The beginning of the value, in quotes.
    example: str

    @property
    def label(self) -> str:
        """The path as pages show it."""
        return shown(self.path)

    @property
    def written(self) -> str:
        """The path as forms carry it."""
        return written(self.path)


def values_of(sample: Mapping[str, object]) -> tuple[SampleValue, ...]:
    """Return the values of a sample that a field can be mapped to, in order, at most 500."""
    found: list[SampleValue] = []
    for path, value in _walk((), sample):
        if len(found) == _MOST_SAMPLE_VALUES:
            break
        found.append(SampleValue(path=path, json_type=json_type_of(value), example=excerpt(value)))
    return tuple(found)


def _walk(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    children: Sequence[tuple[str | int, object]] = ()
    match value:
        case dict():
            children = tuple(value.items())
        case list():
            children = tuple(enumerate(value))
    if path and not isinstance(value, dict):
        yield path, value
    for segment, child in children:
        yield from _walk((*path, segment), child)


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


def json_type_of(value: object) -> str:
    """Return the JSON type of a value (RFC 8259 section 3), with `boolean` for both literals."""
    return _JSON_TYPES[type(value)]
