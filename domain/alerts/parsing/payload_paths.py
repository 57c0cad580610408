"""Paths to values in a payload, which consist of keys and array indexes from the top level.

A path is stored as an array, so that keys can contain dots. Web pages show a path as
`labels["app.kind"][0]`. Some senders put JSON into a string; for example, Amazon SNS puts JSON into
`Message`. A path can continue within such a string.

Some senders put fields into an array. Its items are pairs, such as
`{"name": "host", "value": "web-1"}`, objects with one key, such as `{"host": "web-1"}`, or strings,
such as `host:web-1`. A key after the path of such an array is the name of a field.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from domain.alerts.parsing.incoming_alert import UnreadableBodyError
from domain.alerts.parsing.json_body import parse_json
from domain.core.errors import InvalidError

PayloadPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_PATH_LENGTH = 100
#: Maximum length, in characters, and maximum nesting depth of a string that is parsed as JSON.
_MAX_INNER_LENGTH = 256 * 1024
_MAX_INNER_DEPTH = 32
#: Keys of the name and the value in a pair, best first.
_NAME_KEYS = ("name", "key", "title", "label", "field")
_VALUE_KEYS = ("value", "val")
_MAX_PAIR_KEYS = 4
#: Pattern of the keys of a pair with a prefix, such as `fieldName` and `fieldValue`.
_PREFIXED_KEYS = re.compile(r"(\w+)name \1value")
#: Minimum number of single-key objects that together are treated as the fields of one object.
_MIN_SPLIT_FIELDS = 2
#: Pattern of a text that consists of the name and the value of a field.
_PAIR_TEXT = re.compile(r"([A-Za-z][\w.-]{0,39})[:=](?!//)(.+)")
#: Marker for a path that does not exist.
_MISSING = object()


@lru_cache(maxsize=16)
def _parse_inner_json(text: str) -> object:
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"), nesting_limit=_MAX_INNER_DEPTH)
    except UnreadableBodyError:
        return None


def parse_inner_object(text: str) -> dict[str, object] | None:
    """Return the JSON object in a string, or None if the string contains no object."""
    if not text.lstrip().startswith("{") or len(text) > _MAX_INNER_LENGTH:
        return None
    value = _parse_inner_json(text)
    return value if isinstance(value, dict) else None


def list_children(value: object) -> Iterable[tuple[str | int, object]]:
    """Return the keys or indexes of an object or array with their values.

    For a string that contains a JSON object, return the keys and values of this object.
    """
    match value:
        case dict():
            return list_members(value)
        case list():
            return (*enumerate(value), *list_pairs(value))
        case str() if (inner := parse_inner_object(value)) is not None:
            return list_members(inner)
    return ()


def list_members(named: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Return the members of an object, except keys that UTF-8 cannot encode."""
    return tuple((key, named[key]) for key in named if not _SURROGATE.search(key))


def list_pairs(value: object) -> tuple[tuple[str, object], ...]:
    """Return the fields in an array of pairs, or an empty tuple if any item is not a pair."""
    if _is_split_object(value):
        return tuple(member for item in value for member in list_members(item))
    pairs = tuple(map(_parse_pair, value)) if isinstance(value, list) else ()
    return tuple(each for each in pairs if each) if all(pairs) else ()


def _is_split_object(value: object) -> TypeGuard[list[dict[str, object]]]:
    """Return whether an array contains one object for each field, such as `{"host": "web-1"}`."""
    if not isinstance(value, list) or len(value) < _MIN_SPLIT_FIELDS:
        return False
    keys = {key for item in value if isinstance(item, dict) and len(item) == 1 for key in item}
    return len(keys) == len(value)


def _parse_pair(item: object) -> tuple[str, object] | None:
    if isinstance(item, str):
        found = _PAIR_TEXT.fullmatch(item.strip())
        return (found[1], found[2].strip()) if found else None
    if not isinstance(item, dict) or len(item) > _MAX_PAIR_KEYS:
        return None
    prefixed = _PREFIXED_KEYS.fullmatch(" ".join(item).casefold())
    prefix = prefixed[1] if prefixed else ""
    folded = {key.casefold().removeprefix(prefix): item[key] for key in item}
    name = next((folded[key] for key in _NAME_KEYS if isinstance(folded.get(key), str)), None)
    value_key = next((key for key in _VALUE_KEYS if key in folded), None)
    return (name, folded[value_key]) if name and value_key and not _SURROGATE.search(name) else None


def find_value(payload: object, path: PayloadPath, default: object = None) -> object:
    """Return the value at a path, or the default if the path does not exist."""
    value = payload
    for segment in path:
        if isinstance(value, str):
            value = parse_inner_object(value)
        match value, segment:
            case dict(), str() if segment in value:
                value = value[segment]
            case list(), int() if segment < len(value):
                value = value[segment]
            case list(), str() if segment in (named := dict(list_pairs(value))):
                value = named[segment]
            case _:
                return default
    return value


def has_path(payload: object, path: PayloadPath) -> bool:
    """Return whether a payload contains a path, even if the value is null."""
    return find_value(payload, path, _MISSING) is not _MISSING


def remove_value(value: object, path: PayloadPath) -> Any:
    """Return a copy of a payload without the value at a path."""
    segment, *rest = path
    match value, segment:
        case dict(), str() if segment in value:
            changed = {name: value[name] for name in value if name != segment}
            return (
                {**changed, segment: remove_value(value[segment], tuple(rest))} if rest else changed
            )
        case list(), int() if segment < len(value):
            # Keep the index occupied, so that the following items keep their indexes.
            here = remove_value(value[segment], tuple(rest)) if rest else None
            return [*value[:segment], here, *value[segment + 1 :]]
        case list(), str():
            return _remove_member(value, path)
        case str(), _ if (inner := parse_inner_object(value)) is not None:
            return remove_value(inner, path)
    return value


def _remove_member(items: list[Any], path: PayloadPath) -> list[Any]:
    segment, *rest = path
    if _is_split_object(items):
        return [remove_value(each, path) for each in items if rest or segment not in each]
    return [each for each in items if (_parse_pair(each) or ("",))[0] != segment]


def set_value(payload: object, path: PayloadPath, value: object) -> Any:
    """Return a copy of a payload with a value at a path. Missing objects and arrays are added."""
    if not path:
        return value
    segment, *rest = path
    if isinstance(payload, str):
        payload = parse_inner_object(payload)
    if isinstance(segment, str) and isinstance(payload, list) and _is_split_object(payload):
        inner = set_value(dict(list_pairs(payload)).get(segment), tuple(rest), value)
        return [*(each for each in payload if segment not in each), {segment: inner}]
    if isinstance(segment, str) and list_pairs(payload):
        pair = {"name": segment, "value": set_value({}, tuple(rest), value)}
        return [*remove_value(payload, (segment,)), pair]
    if isinstance(segment, str):
        named = payload if isinstance(payload, dict) else {}
        return {**named, segment: set_value(named.get(segment), tuple(rest), value)}
    items = [*payload] if isinstance(payload, list) else []
    items += [None] * (segment + 1 - len(items))
    items[segment] = set_value(items[segment], tuple(rest), value)
    return items


def format_path(path: PayloadPath) -> str:
    """Return a path as it is shown on web pages."""
    text = ""
    for segment in path:
        if isinstance(segment, str) and _PLAIN_KEY.fullmatch(segment):
            text += f".{segment}" if text else segment
        else:
            text += f"[{json.dumps(segment, ensure_ascii=False)}]"
    return text


def parse_path(text: str) -> PayloadPath:
    """Parse a path that `serialize_path` has written.

    Raise InvalidError if the path is malformed.
    """
    try:
        segments = json.loads(text)
    except (ValueError, RecursionError):
        segments = None
    return validate_path(segments)


def validate_path(segments: object) -> PayloadPath:
    """Convert a stored value to a path.

    Raise InvalidError if the path is malformed.
    """
    if not (isinstance(segments, list) and 0 < len(segments) <= _MAX_PATH_LENGTH):
        raise InvalidError("Choose a field of the sample.")
    if not all(_is_segment(segment) for segment in segments):
        raise InvalidError("Choose a field of the sample.")
    return tuple(segments)


def _is_segment(segment: object) -> bool:
    return isinstance(segment, str) or (type(segment) is int and segment >= 0)


def serialize_path(path: PayloadPath) -> str:
    """Return a path as a JSON array, for use in forms."""
    return json.dumps(list(path), ensure_ascii=False)


def parse_dotted_path(text: str) -> PayloadPath:
    r"""Parse a path of keys and array indexes that are separated by dots.

    A dot within a key is written as `\.`.
    """
    parts = re.split(r"(?<!\\)\.", text)
    return tuple(int(part) if part.isdecimal() else part.replace("\\.", ".") for part in parts)
