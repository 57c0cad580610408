"""Query parameters and links for lists on pages.

Unknown parameters are rejected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

from flask import request, url_for
from flask_login import current_user
from werkzeug.datastructures import MultiDict

from domain.accounts.users import PAGE_SIZES
from domain.core.database.pagination import (
    KeysetPage,
    KeysetRange,
    PageRequest,
    PageResult,
    build_keyset_range,
    check_known_parameters,
    get_row_id,
)
from domain.core.errors import QueryError
from domain.core.types.pagination import ListPage
from domain.core.types.validation import SchemaT, validate_query
from web.access.decorators import get_current_user
from web.http.public_urls import find_page_url
from web.services import get_settings

#: Parameters of keyset pagination.
CURSOR_PARAMETERS = ("before", "after")


_MAX_PAGE_NUMBER = 1_000_000
#: Parameter with which the page's script requests a part of the page.
_PARTIAL_PAGE_PARAMETER = "_part"


def get_list_query(*known: str) -> MultiDict[str, str]:
    """Return the query of this request.

    Raise QueryError for unknown parameters.
    """
    check_known_parameters(request.args.lists(), known, (_PARTIAL_PAGE_PARAMETER,))
    return request.args


def parse_day(arguments: Mapping[str, str]) -> date | None:
    """Return the `day` parameter, or None if it is missing. Raise QueryError for other values."""
    try:
        return date.fromisoformat(text) if (text := arguments.get("day")) else None
    except ValueError as error:
        raise QueryError("`day` must be a date such as 2027-05-31.", field="day") from error


def read_query_parameters(schema: type[SchemaT]) -> SchemaT:
    """Return the query parameters that a schema defines.

    Raise QueryError for invalid values.
    """
    names = schema.model_fields.keys() & request.args.keys()
    return validate_query(schema, {name: request.args.getlist(name) for name in names})


def get_page_size() -> int:
    """Return the number of rows on a page: the user's choice or the instance's default."""
    chosen = get_current_user().user.page_size if current_user.is_authenticated else None
    return chosen or get_settings().page_size


def get_requested_keyset_range() -> KeysetRange:
    """Return the range of a list that the cursor in the request selects.

    Raise QueryError for an invalid cursor.
    """
    return build_keyset_range(request.args, size=get_page_size())


def get_page_request(*, order_by: str) -> PageRequest:
    """Return the size and offset of the numbered page that the request selects.

    Raise QueryError for an invalid page number.
    """
    number, size = get_row_id(request.args, "page") or 1, get_page_size()
    if number > _MAX_PAGE_NUMBER:
        message = "This page of the list does not exist. Go to the first page."
        raise QueryError(message, field="page")
    return PageRequest(size=size, offset=(number - 1) * size, order_by=order_by)


@dataclass(frozen=True, kw_only=True)
class LinkedPage:
    """Page of a list, with the URLs of the next and previous pages."""

    items: tuple[Any, ...]
    next_url: str | None
    previous_url: str | None


@dataclass(frozen=True, kw_only=True)
class Tab:
    """Tab that selects some of the items in a list."""

    key: str
    #: Number of items, or None if counting would be slow.
    count: int | None
    href: str
    current: bool

    @property
    def label(self) -> str:
        """Displayed name of the tab."""
        return self.key.capitalize()


def build_page_links(
    page: KeysetPage[Any], *, next_position: int | None = None, previous_position: int | None = None
) -> LinkedPage:
    """Add the URLs of the next and previous pages, which keep the current filters.

    For lists with row numbers, the positions are the first row numbers of these pages.
    """
    return LinkedPage(
        items=page.items,
        next_url=_build_page_url(before=page.next_before, position=next_position),
        previous_url=_build_page_url(after=page.previous_after, position=previous_position),
    )


def build_numbered_page_links(
    page_result: PageResult[Any] | ListPage[Any], page_request: PageRequest, list_url: str = ""
) -> LinkedPage:
    """Add the URLs of the next and previous pages to a numbered page, keeping current filters.

    `list_url` is the URL of the list, if the request has another URL.
    """
    number, total = page_request.offset // page_request.size + 1, page_result.total or 0
    return LinkedPage(
        items=tuple(page_result.items),
        next_url=_build_page_url(list_url, page=number + 1)
        if page_request.offset + page_request.size < total
        else None,
        previous_url=_build_page_url(list_url, page=number - 1) if number > 1 else None,
    )


def build_first_page_url() -> str:
    """Return the URL of the first page of this list, with the current filters."""
    return _build_list_url(_list_kept_parameters())


def _build_page_url(
    list_url: str = "", position: int | None = None, **cursor: int | str | None
) -> str | None:
    if all(value is None for value in cursor.values()):
        return None
    if position is not None:
        cursor["position"] = position
    return _build_list_url([*_list_kept_parameters(), *cursor.items()], list_url)


def _list_kept_parameters() -> list[tuple[str, int | str | None]]:
    """Return the parameters of this request, except the position in the list."""
    return [
        (name, value)
        for name, value in request.args.items()
        if name not in {"before", "after", "page", "position"} and not name.startswith("_")
    ]


def _build_list_url(query: list[tuple[str, int | str | None]], url: str = "") -> str:
    # The query is appended, since arguments of `url_for` could match parts of the path.
    url = url or url_for(request.endpoint or "", **(request.view_args or {}))
    return f"{url}?{urlencode(query)}" if query else url


@dataclass(frozen=True, kw_only=True)
class PageSizeChoice:
    """Choice of page sizes for a user."""

    #: Current number of rows on a page.
    size: int
    #: Available page sizes, including the current size.
    sizes: tuple[int, ...]
    #: URL of the list's first page, to which the choice returns. It is a form field, since with
    #: many filters it would be too long inside another URL.
    next: str


def build_page_size_choice() -> PageSizeChoice | None:
    """Return the choice of page sizes for this list, or None if there is no choice.

    Users have a choice if they are signed in and the page is not the response to a form.
    """
    if not current_user.is_authenticated or find_page_url() is None:
        return None
    size = get_page_size()
    return PageSizeChoice(
        size=size,
        sizes=tuple(sorted({*PAGE_SIZES, size})),
        next=build_first_page_url(),
    )
