"""Every field of a payload as lines that a page can show."""

from collections.abc import Iterator
from typing import Any

from domain.alerts.text import as_text, storable


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
