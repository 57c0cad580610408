"""The page /admin/api_usage: consumers that upcoming releases affect, across the instance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.paging import one_of, words
from domain.core.errors import QueryError
from domain.releases.changes import Change
from domain.releases.schedule import BY_ID
from domain.releases.usage.reading import Use, uses_of_instance
from web.access.decorators import administrator
from web.extensions import db
from web.pages.list_query import LinkedPage, list_query, page_size
from web.releases.rehearsal import whole_period
from web.services import now, settings

api_usage = Blueprint("api_usage", __name__, url_prefix="/api_usage")
_LARGEST_PAGE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class UsedChange:
    """An API change with the total usage by all consumers."""

    change: Change
    consumers: int
    sure_calls: int
    possible_calls: int


@api_usage.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the changes that affect calls of the instance, with their consumers."""
    query = list_query("change", "search", "page")
    wanted = one_of(query, "change", BY_ID, "") or None
    moment = now()
    period = whole_period(settings(), moment)
    uses = uses_of_instance(period, session=db.session(), now=moment)
    text = words(query, "search").strip()
    return render_template(
        "admin/api_usage/index.html",
        used=[_used(change, some) for change, some in groupby(uses, lambda use: use.change)],
        page=_page(_found(uses, wanted, text), _number(query.get("page", "1")), wanted, text),
        change=BY_ID[wanted] if wanted else None,
        query=text,
        running=period.running,
        keep_days=settings().call_keep_days,
    )


def _used(change: Change, uses: Iterable[Use]) -> UsedChange:
    found = list(uses)
    return UsedChange(
        change=change,
        consumers=len({(use.consumer.kind, use.consumer.id) for use in found}),
        sure_calls=sum(use.calls for use in found if use.is_sure),
        possible_calls=sum(use.calls for use in found if not use.is_sure),
    )


def _found(uses: Sequence[Use], change_id: str | None, text: str) -> Sequence[Use]:
    folded = text.casefold()
    return [
        use
        for use in uses
        if change_id in {None, use.change.id}
        and folded in f"{use.consumer.name}\n{use.consumer.owner}".casefold()
    ]


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _LARGEST_PAGE:
        return int(text[:9])
    raise QueryError("page must be a number.", field="page")


def _page(uses: Sequence[Use], number: int, change_id: str | None, text: str) -> LinkedPage:
    size = page_size()
    begin = (number - 1) * size

    def link(page: int) -> str:
        return url_for("admin.api_usage.index", change=change_id, search=text or None, page=page)

    return LinkedPage(
        items=tuple(uses[begin : begin + size]),
        next_url=link(number + 1) if begin + size < len(uses) else None,
        previous_url=link(number - 1) if number > 1 else None,
    )
