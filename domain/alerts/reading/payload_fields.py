"""Formats a payload for pages, as a list of its fields or as indented JSON."""

from collections.abc import Iterator
from contextlib import suppress

from domain.alerts.reading.body import read_json
from domain.alerts.reading.incoming import UnreadableBody
from domain.alerts.reading.text import as_text, pretty_json, storable

#: Maximum size of a body that is indented, in bytes. Larger bodies are shown as received.
_LARGEST_PRETTY = 200_000
#: Upper bound of the nesting setting. Deeper bodies are never accepted.
_DEEPEST_PRETTY = 500


def _children(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from ((str(index), item) for index, item in enumerate(value))


def _walk(path: str, value: object) -> Iterator[tuple[str, str]]:
    if not (isinstance(value, dict | list) and value):
        yield storable(path), storable(as_text(value))
        return
    for name, child in _children(value):
        yield from _walk(f"{path}.{name}", child)


def flatten(value: object) -> tuple[tuple[str, str], ...]:
    """Return the leaves of a value with their dotted paths. Array items are numbered from 0.

    A leaf is a string, or the JSON text of any other value, including null and empty containers.
    """
    return tuple(line for name, child in _children(value) for line in _walk(name, child))


def pretty(body: bytes) -> str:
    """Return a body as indented JSON, or as received if it is large or not valid JSON."""
    if len(body) <= _LARGEST_PRETTY:
        # Rejected bodies are shown as well, and may not be valid JSON.
        with suppress(UnreadableBody):
            return pretty_json(read_json(body, nesting_limit=_DEEPEST_PRETTY))
    return storable(body.decode("utf-8", "replace"))
