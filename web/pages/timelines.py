"""Timelines on the pages of alerts and incidents, with links to their other parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import request, url_for

from domain.core.database.pagination import get_choice
from domain.core.types.pagination import ListPage
from domain.incidents.timelines.types import TimelineItem, TimelineQuery
from web.pages.list_query import get_page_size

#: Parameters of pages with a timeline.
TIMELINE_PARAMETERS = ("cursor", "sort")
_NEXT_PAGE_LABELS = {"desc": "Older entries", "asc": "Newer entries"}


@dataclass(frozen=True, kw_only=True)
class TimelinePage:
    """Part of a timeline, with the URLs of its other parts."""

    items: Sequence[TimelineItem]
    #: Sort order, `desc` or `asc`.
    sort: str
    is_first: bool
    next_url: str | None
    next_words: str
    other_order_url: str


def get_timeline_query() -> TimelineQuery:
    """Return the part of the timeline that this request selects.

    Raise QueryError for an unknown order.
    """
    sort = get_choice(request.args, "sort", _NEXT_PAGE_LABELS, "desc")
    cursor, size = request.args.get("cursor", ""), get_page_size()
    return TimelineQuery.model_validate({"sort": sort, "cursor": cursor, "per_page": size})


def build_timeline_page(
    timeline_page: ListPage[TimelineItem], query: TimelineQuery
) -> TimelinePage:
    """Return a part of a timeline with its links."""
    following = timeline_page.next_cursor
    return TimelinePage(
        items=timeline_page.items,
        sort=query.sort,
        is_first=not query.cursor,
        next_url=_build_timeline_url(query.sort, following) if following else None,
        next_words=_NEXT_PAGE_LABELS[query.sort],
        other_order_url=_build_timeline_url("asc" if query.sort == "desc" else "desc", None),
    )


def _build_timeline_url(sort: str, cursor: str | None) -> str:
    given = {**(request.view_args or {}), "sort": sort if sort != "desc" else None}
    return url_for(request.endpoint or "", **given, cursor=cursor, _anchor="timeline")
