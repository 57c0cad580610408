"""Pagination of lists: keyset pages, whose cost does not depend on the position, or numbered pages.

Unknown query parameters of lists are rejected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Row, Select, SQLColumnExpression, func
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.errors import QueryError

Item = TypeVar("Item")
Other = TypeVar("Other")
MAX_ID = 2**63 - 1
_MAX_ID_DIGITS = len(str(MAX_ID))
MAX_SEARCH_TEXT_LENGTH = 200
#: Maximum number of characters shown for an unknown parameter name in an error message.
_MAX_ECHO_LENGTH = 50
_UNNAMED = "A parameter has no name"


class _HasId(Protocol):
    @property
    def id(self) -> int | None: ...


Identified = TypeVar("Identified", bound=_HasId)


@dataclass(frozen=True, kw_only=True)
class KeysetRange:
    """The requested part of a list, newest first: IDs below `before`, or IDs above `after`."""

    size: int
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, kw_only=True)
class KeysetPage(Generic[Item]):
    """A page of a list, with the cursors of the next and previous pages."""

    items: tuple[Item, ...]
    next_before: int | str | None = None
    previous_after: int | str | None = None

    def with_items(self, items: Iterable[Other]) -> "KeysetPage[Other]":
        """Return a page with the same cursors and other items."""
        before, after = self.next_before, self.previous_after
        return KeysetPage(items=tuple(items), next_before=before, previous_after=after)


def parse_id(text: str) -> int | None:
    """Return a row ID that is written in decimal digits.

    Return None for other strings, and for numbers with more than 63 bits.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_ID_DIGITS):
        return None
    number = int(text)
    return number if number <= MAX_ID else None


def parse_cursor(text: str | None) -> int | None:
    """Return the ID in a cursor, or None if there is no cursor.

    Raise QueryError if the cursor is not valid.
    """
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
    keyset_range: KeysetRange,
    *,
    session: Session,
    view: Callable[[Row[*tuple[Any, ...]]], Identified],
) -> KeysetPage[Identified]:
    """Return a page of a statement's rows, newest first.

    `view` converts a row to an item. The `id` of an item must be the key of its row.
    """
    limited = statement.limit(keyset_range.size + 1)
    if keyset_range.after is not None:
        newer = session.execute(limited.where(key > keyset_range.after).order_by(key)).all()
        rows = newer[: keyset_range.size][::-1]
        has_newer, has_older = len(newer) > keyset_range.size, True
    else:
        older = limited if keyset_range.before is None else limited.where(key < keyset_range.before)
        found = session.execute(older.order_by(key.desc())).all()
        rows = found[: keyset_range.size]
        has_newer, has_older = keyset_range.before is not None, len(found) > keyset_range.size
    items = tuple(view(row) for row in rows)
    return KeysetPage(
        items=items,
        next_before=items[-1].id if items and has_older else None,
        previous_after=items[0].id if items and has_newer else None,
    )


@dataclass(frozen=True, kw_only=True)
class PageRequest:
    """The requested part of a list that supports both numbered pages and keyset pages."""

    size: int
    #: Number of items before a numbered page.
    offset: int = 0
    is_by_key: bool = False
    #: ID of the last item before a keyset page.
    last_id: int | None = None
    order_by: str = "id"
    is_descending: bool = False


@dataclass(frozen=True, kw_only=True)
class PageResult(Generic[Item]):
    """A part of a list: a numbered page with the total, or a keyset page with the next cursor."""

    items: tuple[Item, ...]
    total: int | None = None
    next_cursor: str | None = None


def fetch_list_page(
    statement: Select[*tuple[Any, ...]],
    orders: Mapping[str, SQLColumnExpression[Any]],
    page_request: PageRequest,
    *,
    session: Session,
) -> PageResult[Row[*tuple[Any, ...]]]:
    """Return the requested part of a statement's rows.

    `orders` contains the columns by which the rows can be ordered. The column `id` is the key, and
    determines the order of equal values.
    """
    key = orders["id"]
    if page_request.is_by_key:
        return _fetch_keyset_page(statement, key, page_request, session=session)
    wanted = dict.fromkeys((orders[page_request.order_by], key))
    order = [each.desc() if page_request.is_descending else each.asc() for each in wanted]
    rows = session.execute(
        statement.order_by(*order).offset(page_request.offset).limit(page_request.size)
    ).all()
    counted = statement.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
    return PageResult(items=tuple(rows), total=session.scalar(counted) or 0)


def _fetch_keyset_page(
    statement: Select[*tuple[Any, ...]],
    key: SQLColumnExpression[int],
    page_request: PageRequest,
    *,
    session: Session,
) -> PageResult[Row[*tuple[Any, ...]]]:
    keyed = statement.add_columns(key.label("list_key"))
    if page_request.last_id is not None:
        keyed = keyed.where(
            key < page_request.last_id if page_request.is_descending else key > page_request.last_id
        )
    order = key.desc() if page_request.is_descending else key.asc()
    rows = session.execute(keyed.order_by(order).limit(page_request.size + 1)).all()
    shown = rows[: page_request.size]
    has_more = len(rows) > page_request.size
    return PageResult(items=tuple(shown), next_cursor=str(shown[-1].list_key) if has_more else None)


def check_known_parameters(
    given: Iterable[tuple[str, Sequence[str]]],
    known_names: Sequence[str],
    unsaid: Sequence[str] = (),
) -> None:
    """Check that all parameters are known and given only once.

    Raise QueryError otherwise. Parameters in `unsaid` are also known, but the error does not list
    them.
    """
    for name, values in given:
        if name not in known_names and name not in unsaid:
            problem = (
                f"`{shorten_parameter_name(name)}` is not a known parameter" if name else _UNNAMED
            )
            raise QueryError(f"{problem}. {_format_known_parameters(known_names)}.", field=name)
        if len(values) > 1:
            raise QueryError(f"`{name}` can be given only once.", field=name)


def shorten_parameter_name(name: str) -> str:
    """Return the beginning of an unknown parameter name, for error messages."""
    return f"{name[:_MAX_ECHO_LENGTH]}…" if len(name) > _MAX_ECHO_LENGTH else name


def _format_known_parameters(known_names: Sequence[str]) -> str:
    return (
        f"Known parameters: {', '.join(known_names)}"
        if known_names
        else "This list has no parameters"
    )


def get_choice(arguments: Mapping[str, str], name: str, choices: Iterable[str], usual: str) -> str:
    """Return the value of a parameter, or the default value if the parameter is omitted.

    Raise QueryError if the value is not one of the choices.
    """
    value = arguments.get(name) or usual
    if value != usual and value not in choices:
        raise QueryError(f"`{name}` must be one of {', '.join(choices)}.", field=name)
    return value


def get_search_text(
    arguments: Mapping[str, str], name: str, *, maximum: int = MAX_SEARCH_TEXT_LENGTH
) -> str:
    """Return the search text in a parameter, which may be empty.

    Raise QueryError if the text is too long.
    """
    value = arguments.get(name, "")
    if len(value) > maximum:  # A truncated text would match more items.
        raise QueryError(f"`{name}` can have at most {maximum} characters.", field=name)
    return value


def get_row_id(arguments: Mapping[str, str], name: str) -> int | None:
    """Return the row ID in a parameter, or None if the parameter is empty.

    Raise QueryError if the value is not a row ID.
    """
    text = arguments.get(name, "")
    number = parse_id(text)
    if text and number is None:
        raise QueryError(f"`{name}` must be a whole number.", field=name)
    return number


def build_keyset_range(arguments: Mapping[str, str], *, size: int) -> KeysetRange:
    """Return the part of a list that the parameter `before` or `after` requests.

    Raise QueryError for an invalid cursor.
    """
    before, after = parse_cursor(arguments.get("before")), parse_cursor(arguments.get("after"))
    return KeysetRange(size=size, before=before, after=after)
