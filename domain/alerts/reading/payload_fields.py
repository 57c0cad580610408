"""Every field of a payload as lines that a page can show, and a whole body laid out."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from domain.alerts.reading.body import read_json
from domain.alerts.reading.incoming import UnreadableBody
from domain.alerts.reading.text import as_text, pretty_json, storable

#: Bodies above this are shown as they came: laying them out would help nobody.
_LARGEST_PRETTY = 200_000
#: Deeper bodies are never accepted, whatever the setting.
_DEEPEST_PRETTY = 500


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from ((str(index), item) for index, item in enumerate(value))


def _walk(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if not (isinstance(value, dict | list) and value):
        yield storable(path), storable(as_text(value))
        return
    for name, child in _children(value):
        yield from _walk(f"{path}.{name}", child)


def flatten(value: Any) -> tuple[tuple[str, str], ...]:
    """Return each leaf of a value with its dotted path; array items are numbered from 0.

    Leaves are strings as they are and JSON texts of all else, null and empty containers included.
    """
    return tuple(line for name, child in _children(value) for line in _walk(name, child))


def pretty(body: bytes) -> str:
    """Return a body laid out for reading, or as it came if it cannot be."""
    if len(body) <= _LARGEST_PRETTY:
        # Refused bodies are shown as well, and some of them are no JSON.
        with suppress(UnreadableBody):
            return pretty_json(read_json(body, nesting_limit=_DEEPEST_PRETTY))
    return storable(body.decode("utf-8", "replace"))
