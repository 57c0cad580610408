"""Turns JSON values into texts that can be stored and that fit their columns."""

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
#: Makes orjson refuse a LongNumber instead of writing it as an object.
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS

#: The length for `short_text` of a text that is not cut.
WHOLE = sys.maxsize
_TITLE_LENGTH = 200
_EXCERPT_LENGTH = 60


def storable(text: str) -> str:
    """Return the text with U+FFFD for NUL and lone surrogates, which databases refuse."""
    if text.isascii():
        return text.replace("\x00", _REPLACEMENT)
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def cut(text: str, length: int) -> str:
    """Return at most `length` characters; a text that was cut ends with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def is_blank(value: object) -> bool:
    """Return whether a value is null, white space, an empty object or an array of such values."""
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
    """Return a value as JSON on lines that begin with `newline`; on one line if that is empty."""
    match value:
        case dict():
            return _write_object(value, newline)
        case list():
            return _write_array(value, newline)
        case LongNumber():
            return value.text
    return _write_scalar(value)


def canonical_json(value: object) -> bytes:
    """Return a value as JSON with sorted names and no spaces: equal values give equal bytes.

    A lone surrogate is encoded as its three bytes, which are not valid UTF-8.
    """
    try:
        return orjson.dumps(value, option=_CANONICAL)
    except TypeError:
        return _write(value, "").encode("utf-8", "surrogatepass")


def pretty_json(value: object) -> str:
    """Return a value as indented JSON with names in the sender's order; the text is storable."""
    try:
        return orjson.dumps(value, option=_PRETTY).decode()
    except TypeError:
        return storable(_write(value, "\n"))


def as_text(value: object) -> str:
    """Return a string as it is and any other value as its JSON text."""
    if isinstance(value, str):
        return value
    return canonical_json(value).decode("utf-8", "surrogatepass")


def excerpt(value: object) -> str:
    """Return the beginning of a value in quotes, for a parse warning."""
    return f"“{storable(cut(as_text(value), _EXCERPT_LENGTH))}”"


def short_text(value: object, length: int) -> str | None:
    """Return a value as a storable text of at most `length` characters, or None if blank."""
    if is_blank(value):
        return None
    text = value if isinstance(value, str) else as_text(value)
    return storable(text if len(text) <= length else cut(text, length))


def first_text(values: Iterable[object], length: int = _TITLE_LENGTH) -> str | None:
    """Return the first value that is not blank, as `short_text` does."""
    for value in values:
        if (text := short_text(value, length)) is not None:
            return text
    return None


def _lines(values: list[object]) -> Iterator[str]:
    """Yield each value on one line, arrays in arrays flattened, blank ones left out."""
    for value in values:
        if isinstance(value, list):
            yield from _lines(value)
        elif line := " ".join(as_text(value).split()) if value is not None else "":
            yield storable(line)


def texts_within(value: object, length: int) -> tuple[str, ...]:
    """Return a value, or the items of an array, as lines of at most `length` characters together.

    The line that exceeds the limit ends with an ellipsis; later ones are left out.
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
