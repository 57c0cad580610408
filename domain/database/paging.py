"""Keyset pagination: the cost of a page does not depend on its position."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Row, Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.errors import QueryError


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


Item = TypeVar("Item")
Identified = TypeVar("Identified", bound=_HasId)
LARGEST_ID = 2**63 - 1
_LONGEST_ID = len(str(LARGEST_ID))


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The requested part of a list: newest first, below or above an id."""

    size: int
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Item]):
    """A page of a list, with the cursors of its neighbours."""

    items: tuple[Item, ...]
    next_before: int | str | None = None
    previous_after: int | str | None = None


def parse_id(text: str) -> int | None:
    """Return a row id of decimal digits, or None for other texts and numbers above 63 bits."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID):
        return None
    number = int(text)
    return number if number <= LARGEST_ID else None


def read_cursor(text: str | None) -> int | None:
    """Return the id in a cursor, or raise QueryError for a forged one."""
    if not text:
        return None
    number = parse_id(text)
    if number is None:
        message = "This page of the list does not exist. Go to the first page."
        raise QueryError(message, field="cursor")
    return number


def fetch_page(
    statement: Select[*tuple[Any, ...]],
    key: InstrumentedAttribute[int],
    part: Slice,
    *,
    session: Session,
    view: Callable[[Row[*tuple[Any, ...]]], Identified],
) -> Page[Identified]:
    """Return a page of a statement's rows, newest first; items have the key as `id`."""
    limited = statement.limit(part.size + 1)
    if part.after is not None:
        newer = session.execute(limited.where(key > part.after).order_by(key)).all()
        rows = newer[: part.size][::-1]
        has_newer, has_older = len(newer) > part.size, True
    else:
        older = limited if part.before is None else limited.where(key < part.before)
        found = session.execute(older.order_by(key.desc())).all()
        rows = found[: part.size]
        has_newer, has_older = part.before is not None, len(found) > part.size
    items = tuple(view(row) for row in rows)
    return Page(
        items=items,
        next_before=items[-1].id if items and has_older else None,
        previous_after=items[0].id if items and has_newer else None,
    )
