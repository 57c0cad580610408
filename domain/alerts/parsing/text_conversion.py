"""Converts JSON values to strings that can be stored and that fit their columns."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

import orjson

from domain.alerts.parsing.json_body import LongNumber

ELLIPSIS = "…"
_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_format_scalar = json.JSONEncoder(ensure_ascii=False).encode
#: Options that make orjson reject a LongNumber instead of serializing it as an object.
_CANONICAL_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
_INDENTED_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS

#: Length at which `convert_to_short_text` never truncates a text.
UNLIMITED_LENGTH = sys.maxsize
_MAX_TITLE_LENGTH = 200
_MAX_EXCERPT_LENGTH = 60


def replace_unstorable_characters(text: str) -> str:
    """Replace NUL characters and lone surrogates with U+FFFD, since databases reject them."""
    if text.isascii():
        return text.replace("\x00", _REPLACEMENT)
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def truncate_to_length(text: str, length: int) -> str:
    """Truncate a string to `length` characters. A truncated string ends with an ellipsis."""
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


def _format_object(value: Mapping[str, object], newline: str) -> str:
    if not value:
        return "{}"
    inner = newline + "  " if newline else ""
    colon = ": " if newline else ":"
    keys = value if newline else sorted(value)
    members = (f"{_format_value(key, '')}{colon}{_format_value(value[key], inner)}" for key in keys)
    return "{" + inner + ("," + inner).join(members) + newline + "}"


def _format_array(value: list[object], newline: str) -> str:
    if not value:
        return "[]"
    inner = newline + "  " if newline else ""
    return (
        "["
        + inner
        + ("," + inner).join(_format_value(item, inner) for item in value)
        + newline
        + "]"
    )


def _format_value(value: object, newline: str) -> str:
    """Return a value as JSON with `newline` before each line, or one line if `newline` is ""."""
    match value:
        case dict():
            return _format_object(value, newline)
        case list():
            return _format_array(value, newline)
        case LongNumber():
            return value.text
    return _format_scalar(value)


def format_canonical_json(value: object) -> bytes:
    """Return a value as JSON with sorted names and no spaces.

    Equal values result in equal bytes. A lone surrogate is encoded as its three bytes, which are
    not valid UTF-8.
    """
    try:
        return orjson.dumps(value, option=_CANONICAL_OPTIONS)
    except TypeError:
        return _format_value(value, "").encode("utf-8", "surrogatepass")


def format_indented_json(value: object) -> str:
    """Return a value as indented, storable JSON with names in the sender's order."""
    try:
        return orjson.dumps(value, option=_INDENTED_OPTIONS).decode()
    except TypeError:
        return replace_unstorable_characters(_format_value(value, "\n"))


def convert_to_text(value: object) -> str:
    """Return a string unchanged, and any other value as JSON text."""
    if isinstance(value, str):
        return value
    return format_canonical_json(value).decode("utf-8", "surrogatepass")


def format_excerpt(value: object) -> str:
    """Return the first characters of a value in quotes, for a warning."""
    text = truncate_to_length(convert_to_text(value), _MAX_EXCERPT_LENGTH)
    return f"“{replace_unstorable_characters(text)}”"


def convert_to_short_text(value: object, length: int) -> str | None:
    """Return a value as a storable string of up to `length` characters, or None if it is blank."""
    if is_blank(value):
        return None
    text = value if isinstance(value, str) else convert_to_text(value)
    return replace_unstorable_characters(
        text if len(text) <= length else truncate_to_length(text, length)
    )


def split_title(text: str) -> tuple[str, str | None]:
    """Split a text of several lines into its first line with letters or digits, and the rest.

    Lines that open or close a code block do not count as text. The rest is None if no further text
    follows.
    """
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if _is_meaningful(line)), None)
    if first is None or len(lines) == 1:
        return text, None
    rest = lines[lines.index(first) + 1 :]
    return first, "\n".join(rest).strip() if any(map(_is_meaningful, rest)) else None


def _is_meaningful(line: str) -> bool:
    return not line.startswith("```") and any(map(str.isalnum, line))


def find_first_text(values: Iterable[object], length: int = _MAX_TITLE_LENGTH) -> str | None:
    """Return the first value that is not blank, converted by `convert_to_short_text`."""
    for value in values:
        if (text := convert_to_short_text(value, length)) is not None:
            return text
    return None


def _convert_to_lines(values: list[object]) -> Iterator[str]:
    """Yield each value as one line. Nested arrays are flattened, and blank values are omitted."""
    for value in values:
        if isinstance(value, list):
            yield from _convert_to_lines(value)
        elif line := " ".join(convert_to_text(value).split()) if value is not None else "":
            yield replace_unstorable_characters(line)


def convert_to_limited_lines(value: object, length: int) -> tuple[str, ...]:
    """Return a value or the items of an array as lines, at most `length` characters in total.

    The line that exceeds the limit ends with an ellipsis, and the lines after it are omitted.
    """
    if value is None:
        return ()
    kept: list[str] = []
    room = length
    for line in _convert_to_lines(value if isinstance(value, list) else [value]):
        if len(line) > room:
            *whole, last = [*kept, line[:room]] if room else kept
            return (*whole, last[:-1] + ELLIPSIS)
        kept.append(line)
        room -= len(line)
    return tuple(kept)
