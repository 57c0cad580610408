"""Builds the tree of a sample's fields, with the name, type and value of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domain.alerts.reading.mapping import json_type_of
from domain.alerts.reading.text import excerpt

#: The most fields in a tree.
MOST_BRANCHES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleNode:
    """A field of a sample with the fields inside it."""

    #: The key, or the position in an array as `[0]`.
    name: str
    #: string, number, boolean, null, array or object.
    json_type: str
    #: The beginning of the value as JSON; for arrays and objects their number of items.
    gist: str
    branches: tuple["SampleNode", ...]


def tree_of(payload: Mapping[str, object]) -> tuple[SampleNode, ...]:
    """Return the tree of a sample in its own order, with at most 500 fields."""
    return _branches_of(payload, iter(range(MOST_BRANCHES)))


def _branches_of(value: object, room: Iterator[int]) -> tuple[SampleNode, ...]:
    found = []
    for name, child in _children_of(value):
        if next(room, None) is None:
            break
        found.append(
            SampleNode(
                name=name,
                json_type=json_type_of(child),
                gist=_gist(child),
                branches=_branches_of(child, room),
            )
        )
    return tuple(found)


def _children_of(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from ((f"[{position}]", child) for position, child in enumerate(value))


def _gist(value: object) -> str:
    match value:
        case dict() | list():
            return "empty" if not value else f"{len(value)} in it"
        case str():
            return excerpt(value)
    return excerpt(value)[1:-1]
