"""The /admin/api_usage page: API consumers that are affected by upcoming releases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.pagination import get_choice, get_search_text
from domain.core.errors import QueryError
from domain.releases.changes import Change
from domain.releases.schedule import CHANGES_BY_ID
from domain.releases.usage.usage_reports import AffectedUsage, find_instance_usage
from web.access.decorators import administrator_required
from web.extensions import db
from web.pages.list_query import LinkedPage, get_list_query, get_page_size
from web.releases.rehearsal import build_full_usage_period
from web.services import get_current_time, get_settings

api_usage = Blueprint("api_usage", __name__, url_prefix="/api_usage")
_MAX_PAGE_NUMBER = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ChangeUsage:
    """An API change, with the number of affected consumers and calls."""

    change: Change
    consumers: int
    sure_calls: int
    possible_calls: int


@api_usage.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List the scheduled changes that affect API calls, and the affected consumers."""
    query = get_list_query("change", "search", "page")
    wanted = get_choice(query, "change", CHANGES_BY_ID, "") or None
    moment = get_current_time()
    period = build_full_usage_period(get_settings(), moment)
    uses = find_instance_usage(period, session=db.session(), now=moment)
    text = get_search_text(query, "search").strip()
    return render_template(
        "admin/api_usage/index.html",
        used=[
            _build_change_usage(change, some)
            for change, some in groupby(uses, lambda use: use.change)
        ],
        page=_build_page(
            _filter_usage(uses, wanted, text),
            _parse_page_number(query.get("page", "1")),
            wanted,
            text,
        ),
        change=CHANGES_BY_ID[wanted] if wanted else None,
        query=text,
        running=period.running,
        keep_days=get_settings().call_keep_days,
    )


def _build_change_usage(change: Change, uses: Iterable[AffectedUsage]) -> ChangeUsage:
    found = list(uses)
    return ChangeUsage(
        change=change,
        consumers=len({(use.consumer.kind, use.consumer.id) for use in found}),
        sure_calls=sum(use.calls for use in found if use.is_sure),
        possible_calls=sum(use.calls for use in found if not use.is_sure),
    )


def _filter_usage(
    uses: Sequence[AffectedUsage], change_id: str | None, text: str
) -> Sequence[AffectedUsage]:
    folded = text.casefold()
    return [
        use
        for use in uses
        if change_id in {None, use.change.id}
        and folded in f"{use.consumer.name}\n{use.consumer.owner}".casefold()
    ]


def _parse_page_number(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_PAGE_NUMBER:
        return int(text[:9])
    raise QueryError("`page` must be a whole number from 1 to 1,000,000.", field="page")


def _build_page(
    uses: Sequence[AffectedUsage], number: int, change_id: str | None, text: str
) -> LinkedPage:
    size = get_page_size()
    begin = (number - 1) * size

    def build_page_url(page: int) -> str:
        return url_for("admin.api_usage.index", change=change_id, search=text or None, page=page)

    return LinkedPage(
        items=tuple(uses[begin : begin + size]),
        next_url=build_page_url(number + 1) if begin + size < len(uses) else None,
        previous_url=build_page_url(number - 1) if number > 1 else None,
    )
