"""Query parameters of lists on pages; unknown ones are refused."""

from flask import request
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import check_known, slice_of
from domain.database.paging import Slice
from web.services import settings

#: Parameters of keyset pagination.
CURSORS = ("before", "after")


#: The parameter of our script for a partial page.
_PART = "_part"


def list_query(*known: str) -> MultiDict[str, str]:
    """Return the query of this request; raise QueryError for unknown parameters."""
    check_known(request.args.lists(), known, (_PART,))
    return request.args


def asked_slice() -> Slice:
    """Return the requested slice of the list."""
    return slice_of(request.args, size=settings().page_size)
