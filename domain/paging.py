"""Lists by key: the cost of a page does not depend on how far down it is."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from domain.errors import InvalidError

Item = TypeVar("Item")
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Which part of a list is wanted: newest first, below or above an id."""

    size: int
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Item]):
    """A part of a list; the ids lead to its neighbours."""

    items: tuple[Item, ...]
    next_before: int | None = None
    previous_after: int | None = None


def read_cursor(text: str | None) -> int | None:
    """Return the id in a cursor, or raise InvalidError for a forged one."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= LARGEST_ID):  # noqa: PLR2004
        message = "This page of the list does not exist; start again at the first one."
        raise InvalidError(message, field="cursor")
    return int(text)
