"""Converts JSON values to texts that can be stored and that fit their columns."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

import orjson

from domain.alerts.reading.body import LongNumber

ELLIPSIS = "…"
_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_write_scalar = json.JSONEncoder(ensure_ascii=False).encode
#: Makes orjson reject a LongNumber instead of serializing it as an object.
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS

#: Length for `short_text` that never truncates a text.
WHOLE = sys.maxsize
_TITLE_LENGTH = 200
_EXCERPT_LENGTH = 60


def storable(text: str) -> str:
    """Replace NUL characters and lone surrogates with U+FFFD, since databases reject them."""
    if text.isascii():
        return text.replace("\x00", _REPLACEMENT)
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def cut(text: str, length: int) -> str:
    """Truncate a text to `length` characters. A truncated text ends with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def is_blank(value: object) -> bool:
    """Return whether a value is null, whitespace, an empty object, or an array of such values."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value or value.isspace()
    if isinstance(value, list):
        return all(map(is_blank, value))
    return isinstance(value, dict) and not value


def _write_object(value: Mapping[str, object], newline: str) -> str:
    if not value:
        return "{}"
    inner = newline + "  " if newline else ""
    colon = ": " if newline else ":"
    keys = value if newline else sorted(value)
    members = (f"{_write(key, '')}{colon}{_write(value[key], inner)}" for key in keys)
    return "{" + inner + ("," + inner).join(members) + newline + "}"


def _write_array(value: list[object], newline: str) -> str:
    if not value:
        return "[]"
    inner = newline + "  " if newline else ""
    return "[" + inner + ("," + inner).join(_write(item, inner) for item in value) + newline + "]"


def _write(value: object, newline: str) -> str:
    """Return a value as JSON whose lines start with `newline`, or on one line if it is empty."""
    match value:
        case dict():
            return _write_object(value, newline)
        case list():
            return _write_array(value, newline)
        case LongNumber():
            return value.text
    return _write_scalar(value)


def canonical_json(value: object) -> bytes:
    """Return a value as JSON with sorted names and no spaces.

    Equal values result in equal bytes. A lone surrogate is encoded as its three bytes, which are
    not valid UTF-8.
    """
    try:
        return orjson.dumps(value, option=_CANONICAL)
    except TypeError:
        return _write(value, "").encode("utf-8", "surrogatepass")


def pretty_json(value: object) -> str:
    """Return a value as indented, storable JSON with names in the sender's order."""
    try:
        return orjson.dumps(value, option=_PRETTY).decode()
    except TypeError:
        return storable(_write(value, "\n"))


def as_text(value: object) -> str:
    """Return a string unchanged, and any other value as JSON text."""
    if isinstance(value, str):
        return value
    return canonical_json(value).decode("utf-8", "surrogatepass")


def excerpt(value: object) -> str:
    """Return the beginning of a value in quotes, for a warning."""
    return f"“{storable(cut(as_text(value), _EXCERPT_LENGTH))}”"


def short_text(value: object, length: int) -> str | None:
    """Return a value as a storable text of at most `length` characters, or None if it is blank."""
    if is_blank(value):
        return None
    text = value if isinstance(value, str) else as_text(value)
    return storable(text if len(text) <= length else cut(text, length))


def first_text(values: Iterable[object], length: int = _TITLE_LENGTH) -> str | None:
    """Return the first value that is not blank, converted by `short_text`."""
    for value in values:
        if (text := short_text(value, length)) is not None:
            return text
    return None


def _lines(values: list[object]) -> Iterator[str]:
    """Yield each value as one line. Nested arrays are flattened, and blank values are omitted."""
    for value in values:
        if isinstance(value, list):
            yield from _lines(value)
        elif line := " ".join(as_text(value).split()) if value is not None else "":
            yield storable(line)


def texts_within(value: object, length: int) -> tuple[str, ...]:
    """Return a value or the items of an array as lines, at most `length` characters in total.

    The line that exceeds the limit ends with an ellipsis, and the lines after it are omitted.
    """
    if value is None:
        return ()
    kept: list[str] = []
    room = length
    for line in _lines(value if isinstance(value, list) else [value]):
        if len(line) > room:
            *whole, last = [*kept, line[:room]] if room else kept
            return (*whole, last[:-1] + ELLIPSIS)
        kept.append(line)
        room -= len(line)
    return tuple(kept)
