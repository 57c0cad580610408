"""Timelines on the pages of alerts and incidents, with links to their other parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import request, url_for

from domain.core.database.paging import one_of
from domain.core.types.base import Found
from domain.incidents.timelines.types import TimelineItem, TimelineQuery
from web.pages.list_query import page_size

#: Parameters of pages with a timeline.
TIMELINE = ("cursor", "sort")
_FURTHER = {"desc": "Older entries", "asc": "Newer entries"}


@dataclass(frozen=True, kw_only=True)
class ShownTimeline:
    """Part of a timeline."""

    items: Sequence[TimelineItem]
    #: Sort order, `desc` or `asc`.
    sort: str
    is_first: bool
    next_url: str | None
    next_words: str
    other_order_url: str


def asked_timeline() -> TimelineQuery:
    """Return the part of the timeline that this request selects.

    Raise QueryError for an unknown order.
    """
    sort = one_of(request.args, "sort", _FURTHER, "desc")
    cursor, size = request.args.get("cursor", ""), page_size()
    return TimelineQuery.model_validate({"sort": sort, "cursor": cursor, "per_page": size})


def shown_timeline(found: Found[TimelineItem], query: TimelineQuery) -> ShownTimeline:
    """Return a part of a timeline with its links."""
    following = found.next_cursor
    return ShownTimeline(
        items=found.items,
        sort=query.sort,
        is_first=not query.cursor,
        next_url=_url(query.sort, following) if following else None,
        next_words=_FURTHER[query.sort],
        other_order_url=_url("asc" if query.sort == "desc" else "desc", None),
    )


def _url(sort: str, cursor: str | None) -> str:
    given = {**(request.view_args or {}), "sort": sort if sort != "desc" else None}
    return url_for(request.endpoint or "", **given, cursor=cursor, _anchor="timeline")
