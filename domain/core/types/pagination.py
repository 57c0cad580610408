"""Pagination parameters of lists, and the pages of results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from domain.core.database.pagination import (
    KeysetPage,
    KeysetRange,
    PageRequest,
    PageResult,
    parse_cursor,
)
from domain.core.types.base import MAX_NUMBER, Item, Query

_MAX_PAGE_SIZE = 100
_DEFAULT_PAGE_SIZE = 20
#: Page number. Clients written for GitLab send 0 for the first page.
PageNumber = Annotated[int, Field(ge=0, le=MAX_NUMBER), AfterValidator(lambda number: number or 1)]
#: Page size. Clients written for GitLab send 0 for the default.
PageSize = Annotated[
    int,
    Field(ge=0, le=MAX_NUMBER, description="Number of items per page, at most 100."),
]


def _check_is_first_page(number: int) -> int:
    # A client that increments the page number would otherwise read the first page forever.
    if number not in {0, 1}:
        raise ValueError("must be 1. To get the next page, follow the link with rel=next")
    return 1


def _limit_page_size(per_page: int, schema: type[Query]) -> int:
    usual: int = schema.model_fields["per_page"].default
    return min(per_page or usual, _MAX_PAGE_SIZE)


class OffsetQuery(Query):
    """Parameters of a list with numbered pages.

    Clients written for GitLab send `pagination` in every request for a list. The parameter is
    accepted, but pages are always numbered.
    """

    page: PageNumber = 1
    per_page: PageSize = _DEFAULT_PAGE_SIZE
    pagination: Literal["offset", "legacy", "keyset"] = "offset"

    @property
    def page_size(self) -> int:
        """The number of items on a page."""
        return _limit_page_size(self.per_page, type(self))

    @property
    def offset(self) -> int:
        """The number of items before the page."""
        return (self.page - 1) * self.page_size

    @property
    def requested_range(self) -> PageRequest:
        """Size and offset of the requested page."""
        return PageRequest(size=self.page_size, offset=self.offset)

    def build_page(self, items: Sequence[Item]) -> "ListPage[Item]":
        """Return the requested page of a complete list."""
        return ListPage(items=items[self.offset : self.offset + self.page_size], total=len(items))


class KeysetQuery(Query):
    """Parameters of a list without page numbers.

    The `Link` header of the response points to the next page.
    """

    cursor: str = Field(
        default="", description="Position in the list, from the link to the next page."
    )
    per_page: PageSize = _DEFAULT_PAGE_SIZE
    pagination: Literal["keyset"] = "keyset"
    page: Annotated[int, AfterValidator(_check_is_first_page)] = Field(
        default=1,
        description=(
            "Page number, which must be 1. To get the next page, follow the link with `rel=next`."
        ),
    )

    @property
    def page_size(self) -> int:
        """The number of items on a page."""
        return _limit_page_size(self.per_page, type(self))

    @property
    def requested_range(self) -> KeysetRange:
        """Size and cursor of the requested page, newest items first.

        Raise QueryError if the cursor is not valid.
        """
        return KeysetRange(size=self.page_size, before=parse_cursor(self.cursor))


#: Option that includes items from ancestor groups in a list for a project or group.
IncludeAncestorGroups = Annotated[
    bool, Field(description="True to include items from ancestor groups.")
]


class PagedQuery(OffsetQuery):
    """Parameters of a list with numbered pages, or with keyset pages if `pagination` is `keyset`.

    A list with other orders or another default order overrides `order_by` and `sort`.
    """

    cursor: str = Field(
        default="",
        description="Position in a list with keyset pagination, from the link to the next page.",
    )
    #: Column that determines the order. Subclasses override the type with a `Literal`, which mypy
    #: accepts for a `str`, but not for another `Literal`.
    order_by: str = Field(default="id", pattern="^id$")
    sort: Literal["asc", "desc"] = Field(default="desc", description="Sort order.")

    @field_validator("pagination")
    @classmethod
    def _check_no_page_with_keyset(cls, value: str, others: ValidationInfo) -> str:
        if value == "keyset" and others.data.get("page", 1) != 1:
            raise ValueError(
                "must not be keyset if `page` is given. To get the next page, follow the link with "
                "rel=next"
            )
        return value

    @field_validator("cursor")
    @classmethod
    def _check_cursor(cls, value: str, others: ValidationInfo) -> str:
        if value and others.data.get("pagination") != "keyset":
            raise ValueError("requires pagination=keyset")
        return value

    @field_validator("order_by")
    @classmethod
    def _check_keyset_order(cls, value: str, others: ValidationInfo) -> str:
        if value != "id" and others.data.get("pagination") == "keyset":
            raise ValueError("must be id with pagination=keyset")
        return value

    @property
    def requested_range(self) -> PageRequest:
        """Size, position and order of the requested page.

        Raise QueryError if the cursor is not valid.
        """
        is_by_key = self.pagination == "keyset"
        return PageRequest(
            size=self.page_size,
            offset=self.offset,
            is_by_key=is_by_key,
            last_id=parse_cursor(self.cursor),
            # A keyset page is always ordered by ID.
            order_by="id" if is_by_key else self.order_by,
            is_descending=self.sort == "desc",
        )


@dataclass(frozen=True, kw_only=True)
class ListPage(Generic[Item]):
    """A page of a list, with the total for numbered lists or the next cursor for keyset lists.

    If a future release will remove the numbered pages of a list, the pages contain both, so that
    existing links stay valid.
    """

    items: Sequence[Item]
    total: int | None = None
    next_cursor: str | None = None

    def has_more_than(self, number: int) -> bool:
        """Return whether this is a numbered page of a list with more items than `number`."""
        return self.total is not None and self.total > number and bool(self.items)

    @classmethod
    def from_page_result(
        cls, page_result: PageResult[Any], build_item: Callable[[Any], Item]
    ) -> "ListPage[Item]":
        """Return a page of a list that supports numbered and keyset pages (`PagedQuery`)."""
        return cls(
            items=[build_item(each) for each in page_result.items],
            total=page_result.total,
            next_cursor=page_result.next_cursor,
        )

    @classmethod
    def from_keyset_page(
        cls, page: KeysetPage[Any], build_item: Callable[[Any], Item]
    ) -> "ListPage[Item]":
        """Return a page of a list that supports only keyset pages (`KeysetQuery`)."""
        following = page.next_before
        return cls(
            items=[build_item(each) for each in page.items],
            next_cursor=None if following is None else str(following),
        )
