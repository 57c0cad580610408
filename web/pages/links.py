"""Links between the pages of a list."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import request, url_for
from flask_login import current_user

from domain.accounts.users import PAGE_SIZES
from domain.database.paging import Listed, ListPart, Page
from web.http.public_urls import page_url
from web.pages.list_query import page_size


@dataclass(frozen=True, kw_only=True)
class LinkedPage:
    """A page of a list with the URLs of its neighbours."""

    items: tuple[Any, ...]
    next_url: str | None
    previous_url: str | None


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of a list."""

    key: str
    #: None if counting would be slow.
    count: int | None
    href: str
    current: bool

    @property
    def label(self) -> str:
        """The name of the tab."""
        return self.key.capitalize()


def page_links(
    page: Page[Any], *, next_position: int | None = None, previous_position: int | None = None
) -> LinkedPage:
    """Add the URLs of its neighbours to a page of a list, with the current filters.

    A list that numbers its rows says with which number each neighbour begins.
    """
    return LinkedPage(
        items=page.items,
        next_url=_link(before=page.next_before, position=next_position),
        previous_url=_link(after=page.previous_after, position=previous_position),
    )


def numbered_links(found: Listed[Any], part: ListPart) -> LinkedPage:
    """Add the URLs of its neighbours to a numbered page of a list, with the current filters."""
    number, total = part.offset // part.size + 1, found.total or 0
    return LinkedPage(
        items=found.items,
        next_url=_link(page=number + 1) if part.offset + part.size < total else None,
        previous_url=_link(page=number - 1) if number > 1 else None,
    )


def first_page_url() -> str:
    """Return the URL of the first page of this list, with the current filters."""
    return _url(_kept())


def _link(position: int | None = None, **cursor: int | str | None) -> str | None:
    if all(value is None for value in cursor.values()):
        return None
    if position is not None:
        cursor["position"] = position
    return _url([*_kept(), *cursor.items()])


def _kept() -> list[tuple[str, int | str | None]]:
    """Return the parameters of this request that are no position in the list."""
    return [
        (name, value)
        for name, value in request.args.items()
        if name not in {"before", "after", "page", "position"} and not name.startswith("_")
    ]


def _url(query: list[tuple[str, int | str | None]]) -> str:
    # Appended as a query: as arguments of `url_for` its names could match parts of the path.
    url = url_for(request.endpoint or "", **(request.view_args or {}))
    return f"{url}?{urlencode(query)}" if query else url


@dataclass(frozen=True, kw_only=True)
class SizeChoice:
    """What a user can choose from."""

    #: The number of rows now.
    size: int
    #: Those to choose from, with the present one.
    sizes: tuple[int, ...]
    #: The address that keeps a size and leads back to the first page of the list.
    action: str


def size_choice() -> SizeChoice | None:
    """Return the choice for the list of this page; None for visitors who are not signed in."""
    if not current_user.is_authenticated or page_url() is None:
        return None
    size = page_size()
    return SizeChoice(
        size=size,
        sizes=tuple(sorted({*PAGE_SIZES, size})),
        action=url_for("page_sizes.choose", next=first_page_url()),
    )
