"""The choice of how many rows the pages of lists have."""

from dataclasses import dataclass

from flask import url_for
from flask_login import current_user

from domain.accounts.page_sizes import PAGE_SIZES
from web.http.public_urls import page_url
from web.pages.links import first_page_url
from web.pages.list_query import page_size


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
