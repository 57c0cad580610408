"""Paths to the values of a payload: the keys, and positions in arrays, from its top.

A path is stored as an array of keys and indexes, so that a key may contain dots; pages show it as
`labels["app.kind"][0]`. Some senders put JSON into a text, as Amazon SNS does with its `Message`: a
path goes on inside such a text.
"""

import json
import re
from functools import lru_cache
from typing import Any

from domain.alerts.reading.body import read_json
from domain.alerts.reading.incoming import UnreadableBody
from domain.core.errors import InvalidError

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DEEPEST_PATH = 100
#: In characters, and in levels. Larger texts are texts, whatever is in them.
_LONGEST_INNER = 256 * 1024
_DEEPEST_INNER = 32


@lru_cache(maxsize=16)
def _parsed(text: str) -> object:
    try:
        return read_json(text.encode("utf-8", "surrogatepass"), nesting_limit=_DEEPEST_INNER)
    except UnreadableBody:
        return None


def inner_object(text: str) -> dict[str, object] | None:
    """Return the JSON object that a text holds, or None if it holds none."""
    if not text.lstrip().startswith("{") or len(text) > _LONGEST_INNER:
        return None
    value = _parsed(text)
    return value if isinstance(value, dict) else None


def resolve(payload: object, path: Path) -> object:
    """Return the value that a path leads to, or None if there is none."""
    value = payload
    for segment in path:
        if isinstance(value, str):
            value = inner_object(value)
        match value, segment:
            case dict(), str():
                value = value.get(segment)
            case list(), int() if segment < len(value):
                value = value[segment]
            case _:
                return None
    return value


def without(value: object, path: Path) -> Any:
    """Return a payload without the value that a path leads to; the payload itself stays."""
    segment, *rest = path
    match value, segment:
        case dict(), str() if segment in value:
            changed = {name: value[name] for name in value if name != segment}
            return {**changed, segment: without(value[segment], tuple(rest))} if rest else changed
        case list(), int() if segment < len(value):
            # The index stays occupied, so that the items after it keep theirs.
            here = without(value[segment], tuple(rest)) if rest else None
            return [*value[:segment], here, *value[segment + 1 :]]
        case str(), _ if (inner := inner_object(value)) is not None:
            return without(inner, path)
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
    return checked_path(segments)


def checked_path(segments: object) -> Path:
    """Return a path from its stored value; raise InvalidError if it is malformed."""
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


def path_of(text: str) -> Path:
    """Return the path that keys and positions with dots between them stand for."""
    return tuple(int(part) if part.isdecimal() else part for part in text.split("."))


def has_path(payload: object, path: Path) -> bool:
    """Return whether a payload has a key, even if its value is null."""
    value = payload
    for segment in path:
        if isinstance(value, str):
            value = inner_object(value)
        match value, segment:
            case dict(), str() if segment in value:
                value = value[segment]
            case list(), int() if segment < len(value):
                value = value[segment]
            case _:
                return False
    return True
