"""The query of a page's list; what the list does not know is refused in words."""

from flask import request
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import check_known, slice_of
from domain.database.paging import Slice
from web.services import settings

#: What leads through a list.
PLACES = ("before", "after")


#: What our own script says to get a part of the page alone.
_PART = "_part"


def list_query(*known: str) -> MultiDict[str, str]:
    """Return the query of this request, or raise QueryError for what the list does not know."""
    check_known(request.args.lists(), known, (_PART,))
    return request.args


def asked_slice() -> Slice:
    """Return the part of the list that the query leads to."""
    return slice_of(request.args, size=settings().page_size)
