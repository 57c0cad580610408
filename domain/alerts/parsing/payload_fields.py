"""Formats a payload for web pages, as a list of its fields or as indented JSON."""

from collections.abc import Iterator
from contextlib import suppress

from domain.alerts.parsing.incoming_alert import UnreadableBodyError
from domain.alerts.parsing.json_body import parse_json
from domain.alerts.parsing.text_conversion import (
    convert_to_text,
    format_indented_json,
    replace_unstorable_characters,
)

#: Maximum size of a body that is indented, in bytes. Larger bodies are shown as received.
_MAX_INDENTED_BYTES = 200_000
#: Upper bound of the nesting setting. Deeper bodies are never accepted.
_MAX_NESTING = 500


def _list_children(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from ((str(index), item) for index, item in enumerate(value))


def _walk_leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    if not (isinstance(value, dict | list) and value):
        yield (
            replace_unstorable_characters(path),
            replace_unstorable_characters(convert_to_text(value)),
        )
        return
    for name, child in _list_children(value):
        yield from _walk_leaves(f"{path}.{name}", child)


def flatten_payload(value: object) -> tuple[tuple[str, str], ...]:
    """Return the leaves of a value with their dotted paths. Array items are numbered from 0.

    A leaf is a string, or the JSON text of any other value, including null and empty containers.
    """
    return tuple(
        line for name, child in _list_children(value) for line in _walk_leaves(name, child)
    )


def format_payload(body: bytes) -> str:
    """Return a body as indented JSON, or as received if it is large or not valid JSON."""
    if len(body) <= _MAX_INDENTED_BYTES:
        # Rejected bodies are also shown, and might not be valid JSON.
        with suppress(UnreadableBodyError):
            return format_indented_json(parse_json(body, nesting_limit=_MAX_NESTING))
    return replace_unstorable_characters(body.decode("utf-8", "replace"))
