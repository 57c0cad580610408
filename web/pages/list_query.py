"""Query parameters of lists on pages; unknown ones are refused."""

from flask import request
from flask_login import current_user
from werkzeug.datastructures import MultiDict

from domain.database.paging import ListPart, Slice, check_known, row_id, slice_of
from domain.errors import QueryError
from web.access.marks import get_current_user
from web.services import settings

#: Parameters of keyset pagination.
CURSORS = ("before", "after")


_LARGEST_PAGE = 1_000_000
#: The parameter of our script for a partial page.
_PART = "_part"


def list_query(*known: str) -> MultiDict[str, str]:
    """Return the query of this request; raise QueryError for unknown parameters."""
    check_known(request.args.lists(), known, (_PART,))
    return request.args


def page_size() -> int:
    """Return the number of rows of a page: the user's choice, else that of the instance."""
    chosen = get_current_user().user.page_size if current_user.is_authenticated else None
    return chosen or settings().page_size


def asked_slice() -> Slice:
    """Return the requested slice of the list."""
    return slice_of(request.args, size=page_size())


def asked_part(*, order_by: str) -> ListPart:
    """Return the requested part of a list with numbered pages."""
    number, size = row_id(request.args, "page") or 1, page_size()
    if number > _LARGEST_PAGE:
        message = "This page of the list does not exist. Go to the first page."
        raise QueryError(message, field="page")
    return ListPart(size=size, offset=(number - 1) * size, order_by=order_by)
